-- Purpose: holds the lease of a job until the end of the transaction, wherever it is moved meanwhile.
-- Parameters: id, or NULL.
-- Returns: what is needed to end it and to decide about a callback; a row of NULLs when the job has no lease.
-- Locks: the row of leases; waits for somebody who is ending or moving it, no longer than lock_timeout.
-- Caller: resume_attempts.
CREATE OR REPLACE FUNCTION /*schema*/awa.hold_lease_of(
    p_job bigint, OUT receipt_id bigint, OUT nonce bigint, OUT claim_slot smallint, OUT run_lease bigint,
    OUT waiting_until timestamptz)
LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    FOR v_turn IN 1..8 LOOP
        SELECT l.receipt_id, l.nonce, l.claim_slot, l.run_lease, l.waiting_until
        INTO receipt_id, nonce, claim_slot, run_lease, waiting_until
        FROM /*schema*/awa.leases AS l WHERE l.job_id = p_job FOR UPDATE;
        EXIT WHEN FOUND;
        PERFORM FROM /*schema*/awa.leases AS l WHERE l.job_id = p_job;
        EXIT WHEN NOT FOUND;
        IF v_turn = 8 THEN
            RAISE EXCEPTION 'the lease of job % was moved 8 times while it was being held', p_job
                USING ERRCODE = '55P03';
        END IF;
    END LOOP;
END
$awa$;
