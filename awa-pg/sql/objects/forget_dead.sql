-- Purpose: deletes jobs that died long ago, longest dead first, and gives back the keys that they may hold.
-- Parameters: for how long a job must have been dead, in microseconds; at most so many; the present for tests.
-- Returns: how many.
-- Locks: the rows deleted, only tried; where some job is unique, as release_unique_keys.
-- Caller: Maintainer::forget_dead.
CREATE OR REPLACE FUNCTION /*schema*/awa.forget_dead(p_age_us bigint, p_limit bigint, p_now timestamptz DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_before timestamptz := coalesce(p_now, clock_timestamp()) - p_age_us * interval '1 microsecond';
    v_jobs   bigint[];
BEGIN
    WITH gone AS (
        DELETE FROM /*schema*/awa.dlq_entries AS q
        WHERE q.job_id = ANY (ARRAY(
            SELECT o.job_id FROM /*schema*/awa.dlq_entries AS o WHERE o.failed_at <= v_before
            ORDER BY o.failed_at, o.job_id LIMIT p_limit FOR UPDATE SKIP LOCKED))
        RETURNING q.job_id)
    SELECT array_agg(g.job_id) INTO v_jobs FROM gone AS g;
    IF v_jobs IS NULL THEN
        RETURN 0;
    END IF;
    -- As cancelled jobs, which hold no key.
    PERFORM /*schema*/awa.release_unique_keys(v_jobs, 64::smallint);
    RETURN cardinality(v_jobs);
END
$awa$;
