-- Purpose: holds back claims of a queue, or lets them go on and wakes its dispatchers.
-- Parameters: queue, whether to pause.
-- Returns: nothing.
-- Locks: the rows of its lanes.
-- Caller: Operator::set_paused, after open_queue.
WITH changed AS (
    UPDATE /*schema*/awa.queue_lanes AS l SET paused = $2::boolean
    WHERE l.queue = $1::text AND l.paused <> $2::boolean RETURNING l.queue)
SELECT /*schema*/awa.wake(ARRAY[$1::text]) FROM (SELECT pg_catalog.count(*) FROM changed) AS c WHERE NOT $2::boolean
