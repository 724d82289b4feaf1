-- Purpose: counts every job once, by state. A function, because compiling the
--   plans of the large views costs seconds, and only a function can forbid it.
-- Parameters: none.
-- Returns: state, number of jobs, number of distinct jobs; and one row with state NULL for all states together.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: Operator::census.
CREATE OR REPLACE FUNCTION /*schema*/awa.count_states()
RETURNS TABLE (state text, jobs bigint, distinct_jobs bigint)
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    -- Each statement of a volatile function has a snapshot of its own, taken when all that it reads is locked: with an older
    -- one, jobs that went on elsewhere would be missed when their slots were truncated before it came to them.
    RETURN QUERY
    SELECT j.state, count(*), count(DISTINCT j.job_id) FROM /*schema*/awa.jobs AS j
    GROUP BY GROUPING SETS ((j.state), ());
END
$awa$;
