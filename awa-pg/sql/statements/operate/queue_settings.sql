-- Purpose: what is set for a queue.
-- Parameters: queue.
-- Returns: number of shards, whether it has a dead-letter queue; no row where nothing is set.
-- Locks: ACCESS SHARE on queue_settings.
-- Caller: Operator::queue_settings.
SELECT s.enqueue_shards, s.dead_letter FROM /*schema*/awa.queue_settings AS s WHERE s.queue = $1::text
