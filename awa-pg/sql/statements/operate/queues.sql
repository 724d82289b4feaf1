-- Purpose: all queues with exact counts.
-- Parameters: none.
-- Returns: queue, paused, and the numbers of ready, running, deferred, finished, dead and waiting jobs; by name.
-- Locks: as the function.
-- Caller: Operator::queues.
SELECT q.queue, q.paused, q.ready, q.running, q.deferred, q.finished, q.dead, q.waiting
FROM /*schema*/awa.list_queues() AS q ORDER BY q.queue
