-- Purpose: counts every job once, by state. A function, because compiling the
--   plans of the large views costs seconds, and only a function can forbid it.
-- Parameters: none.
-- Returns: state, number of jobs, number of distinct jobs; and one row with state NULL for all states together.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: Operator::census.
CREATE OR REPLACE FUNCTION /*schema*/awa.count_states()
RETURNS TABLE (state text, jobs bigint, distinct_jobs bigint)
LANGUAGE plpgsql STABLE
SET jit = off SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    RETURN QUERY
    SELECT j.state, count(*), count(DISTINCT j.job_id) FROM /*schema*/awa.jobs AS j
    GROUP BY GROUPING SETS ((j.state), ());
END
$awa$;
