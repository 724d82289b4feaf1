-- Purpose: counts every job once, by state.
-- Parameters: none.
-- Returns: state, number of jobs, number of distinct jobs; and one row with state NULL for all states together. The two
--   numbers differ only when a job is in two places.
-- Locks: ACCESS SHARE on everything.
-- Caller: Operator::census.
SELECT j.state, pg_catalog.count(*), pg_catalog.count(DISTINCT j.job_id) FROM /*schema*/awa.jobs AS j
GROUP BY GROUPING SETS ((j.state), ())
