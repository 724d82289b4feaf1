-- Purpose: carries out cancels that were asked for in transactions of applications, wherever their jobs are now. What somebody
--   else is changing at this moment is left to the next tick.
-- Parameters: the present for tests.
-- Returns: how many requests were settled, at most 1,000 a call.
-- Locks: the rows of cancel_requests that nobody else has; as settle_buried and as cancel_jobs.
-- Caller: Maintainer::tidy.
CREATE OR REPLACE FUNCTION /*schema*/awa.deliver_cancels(p_now timestamptz DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $awa$
DECLARE
    v_now     timestamptz := coalesce(p_now, clock_timestamp());
    v_request record;
    v_answer  text;
    v_total   integer := 0;
BEGIN
    IF pg_relation_size('/*schema*/awa.cancel_requests') = 0 THEN
        RETURN 0;
    END IF;
    FOR v_request IN
        SELECT r.ctid AS at, r.job_id, r.reason FROM /*schema*/awa.cancel_requests AS r LIMIT 1000 FOR UPDATE SKIP LOCKED
    LOOP
        BEGIN
            -- The order of cancel_jobs: a job may be on its way, and each statement sees what was committed when it began.
            v_answer := coalesce(
                /*schema*/awa.cancel_deferred(v_request.job_id, v_request.reason, v_now),
                /*schema*/awa.cancel_carried(v_request.job_id, v_request.reason, v_now),
                /*schema*/awa.cancel_lease(v_request.job_id, v_request.reason, v_now),
                /*schema*/awa.settle_buried(v_request.job_id),
                /*schema*/awa.cancel_in_ring(v_request.job_id, v_request.reason, v_now));
            IF v_answer IS NULL THEN
                SELECT 'contended' INTO v_answer FROM /*schema*/awa.find_job(v_request.job_id) AS j
                WHERE j.state IN ('ready', 'running', 'deferred', 'waiting');
            END IF;
        EXCEPTION WHEN lock_not_available THEN
            v_answer := 'contended';
        END;
        CONTINUE WHEN v_answer = 'contended';
        DELETE FROM /*schema*/awa.cancel_requests AS r WHERE r.ctid = v_request.at;
        v_total := v_total + 1;
    END LOOP;
    RETURN v_total;
END
$awa$;
