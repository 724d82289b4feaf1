-- Purpose: gives back the keys of jobs that enter a state in which they do not hold them. Called for every job that ends,
--   so it costs nothing where no job is unique, and one look into an index where none of these is.
-- Parameters: jobs; the state that they enter, as a number of unique_claims.states.
-- Returns: nothing.
-- Locks: the rows deleted, only tried: what somebody else has locked is left to a tick. Never waits.
-- Caller: route_ended, record_completions_in_0, cancel_deferred, cancel_in_ring.
CREATE OR REPLACE FUNCTION /*schema*/awa.release_unique_keys(p_jobs bigint[], p_entered smallint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    IF pg_relation_size('/*schema*/awa.unique_claims') = 0 THEN
        RETURN;
    END IF;
    PERFORM FROM /*schema*/awa.unique_claims AS c
    WHERE c.job_id BETWEEN (SELECT min(j) FROM unnest(p_jobs) AS j) AND (SELECT max(j) FROM unnest(p_jobs) AS j)
    LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    WITH held AS MATERIALIZED (
        SELECT c.job_id FROM /*schema*/awa.unique_claims AS c
        WHERE c.job_id = ANY (p_jobs) AND c.states & p_entered = 0
    ), free AS MATERIALIZED (
        SELECT c.key FROM /*schema*/awa.unique_claims AS c
        WHERE c.job_id = ANY (p_jobs) AND c.states & p_entered = 0 FOR UPDATE SKIP LOCKED
    ), released AS (
        DELETE FROM /*schema*/awa.unique_claims AS c USING free AS f WHERE c.key = f.key RETURNING c.job_id
    )
    INSERT INTO /*schema*/awa.unique_releases (job_id)
    SELECT h.job_id FROM held AS h WHERE NOT EXISTS (SELECT FROM released AS r WHERE r.job_id = h.job_id);
END
$awa$;
