-- Purpose: makes sure that the lanes of queues exist.
-- Parameters: queues.
-- Returns: nothing, as many times as there are queues.
-- Locks: as the function open_queue_lanes, to the end of the statement. In the order of the names, so that two who open
--   the same queues do not wait for each other in a circle.
-- Caller: Maintainer::open_queues.
SELECT /*schema*/awa.open_queue_lanes(q.queue)
FROM (SELECT n AS queue FROM pg_catalog.unnest($1::text[]) AS n ORDER BY n COLLATE pg_catalog."C" OFFSET 0) AS q
