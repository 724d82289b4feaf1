-- Purpose: gives back the keys of jobs that enter a state in which they do not hold them. Called for every job that ends,
--   so it costs nothing where no job is unique, and one look into an index where none of these is.
-- Parameters: jobs; the state that they enter, as a number of unique_claims.states.
-- Returns: nothing.
-- Locks: the rows deleted, only tried: what somebody else has locked is left to a tick. Never waits.
-- Caller: place_ended, cancel_carried, record_completions_in_0, cancel_deferred, cancel_in_ring, release_claimed_keys, delete_jobs, forget_dead,
--   forget_removed.
CREATE OR REPLACE FUNCTION /*schema*/awa.release_unique_keys(p_jobs bigint[], p_entered smallint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_held     bigint[];
    v_released bigint[];
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
    SELECT array_agg(c.job_id) INTO v_held FROM /*schema*/awa.unique_claims AS c
    WHERE c.job_id = ANY (p_jobs) AND c.states & p_entered = 0;
    IF v_held IS NULL THEN
        RETURN;
    END IF;
    WITH released AS (
        DELETE FROM /*schema*/awa.unique_claims AS c
        WHERE c.ctid = ANY (ARRAY(
            SELECT f.ctid FROM /*schema*/awa.unique_claims AS f
            WHERE f.job_id = ANY (v_held) AND f.states & p_entered = 0 FOR UPDATE SKIP LOCKED))
        RETURNING c.job_id)
    SELECT array_agg(r.job_id) INTO v_released FROM released AS r;
    IF cardinality(v_held) IS DISTINCT FROM cardinality(v_released) THEN
        INSERT INTO /*schema*/awa.unique_releases (job_id)
        SELECT h FROM unnest(v_held) AS h WHERE NOT h = ANY (coalesce(v_released, '{}'));
    END IF;
END
$awa$;
