-- Purpose: counts every job once, by state.
-- Parameters: none.
-- Returns: state, number of jobs, number of distinct jobs; and one row with state NULL for all states together. The two
--   numbers differ only when a job is in two places.
-- Locks: as the function.
-- Caller: Operator::census.
SELECT c.state, c.jobs, c.distinct_jobs
FROM /*schema*/awa.count_states() AS c
