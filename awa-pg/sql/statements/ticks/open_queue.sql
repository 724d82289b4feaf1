-- Purpose: makes sure that the lanes of a queue exist.
-- Parameters: queue.
-- Returns: nothing.
-- Locks: as the function.
-- Caller: Maintainer::open_queue.
SELECT /*schema*/awa.open_queue_lanes($1::text)
