-- Purpose: sets what holds for a queue.
-- Parameters: queue, number of shards, whether it has a dead-letter queue.
-- Returns: nothing.
-- Locks: as the function.
-- Caller: Operator::configure_queue.
SELECT /*schema*/awa.configure_queue($1::text, $2::smallint, $3::boolean)
