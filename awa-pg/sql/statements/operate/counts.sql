-- Purpose: counts jobs by queue and state, one by one.
-- Parameters: none.
-- Returns: queue, paused, state (NULL in a row that only names the queue), jobs in that state, jobs that ever ended in it.
-- Locks: as the function.
-- Caller: Operator::counts.
SELECT c.queue, c.paused, c.state, c.jobs, c.ever
FROM /*schema*/awa.count_jobs() AS c ORDER BY c.queue
