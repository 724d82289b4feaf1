-- Purpose: counts jobs by queue and state without looking at single ones, but for those that wait: of them at most so many
--   are counted per slot.
-- Parameters: stop counting the ready jobs of a slot at so many.
-- Returns: queue, paused, state (NULL in a row that only names the queue), jobs in that state, jobs that ever ended in it.
-- Locks: as the function.
-- Caller: Operator::counts.
SELECT c.queue, c.paused, c.state, c.jobs, c.ever
FROM /*schema*/awa.estimate_jobs($1::bigint) AS c ORDER BY c.queue
