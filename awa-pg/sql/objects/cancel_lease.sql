-- Purpose: cancels one job that runs or waits as a lease, by ending its attempt.
-- Parameters: id; reason; the present.
-- Returns: 'running' or 'waiting' when it was cancelled from there, 'contended' when somebody is ending it, NULL when it is no lease.
-- Locks: as end_attempts.
-- Caller: cancel_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.cancel_lease(p_job bigint, p_reason text, p_now timestamptz) RETURNS text
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_lease record;
BEGIN
    SELECT l.claim_slot, l.nonce, l.receipt_id, l.waiting_until INTO v_lease FROM /*schema*/awa.leases AS l WHERE l.job_id = p_job;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM FROM /*schema*/awa.end_attempts(
        ARRAY[v_lease.claim_slot], ARRAY[v_lease.nonce], ARRAY[v_lease.receipt_id], ARRAY[5::smallint], ARRAY['cancelled'],
        ARRAY[NULL::bigint], ARRAY[p_reason], ARRAY[NULL::json], p_now);
    RETURN CASE WHEN NOT FOUND THEN 'contended' WHEN v_lease.waiting_until IS NULL THEN 'running' ELSE 'waiting' END;
END
$awa$;
