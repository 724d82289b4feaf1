-- Purpose: appends the row-local claims of one batch to one slot of the claim ring, whose child the caller has locked by
--   enter_claim_slot.
-- Parameters: batch, lane, sequence of the attempt batch, its slot; its members in order: jobs, and the leases of their
--   ready rows (NULL: all 0); claiming instance, nonce, time of the claim, deadline or NULL.
-- Returns: nothing.
-- Locks: none beyond the child's.
-- Caller: claim_jobs.
-- per slot of: claim ring
CREATE OR REPLACE FUNCTION /*schema*/awa.record_row_claims_in_0/*slot*/(
    p_batch bigint, p_lane bigint, p_seq bigint, p_ready_slot smallint, p_jobs bigint[], p_leases bigint[],
    p_instance bigint, p_nonce bigint, p_now timestamptz, p_deadline timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    INSERT INTO /*schema*/awa.lease_claims_0/*slot*/ (
        receipt_id, job_id, run_lease, lane_id, attempt_seq, claimed_at, instance_id, nonce, claim_slot, ready_slot,
        deadline_at)
    SELECT (p_batch << 10) + m.index, m.job, coalesce(m.lease, 0) + 1, p_lane, p_seq, p_now, p_instance, p_nonce, 0/*slot*/,
           p_ready_slot, p_deadline
    FROM unnest(p_jobs, p_leases) WITH ORDINALITY AS m (job, lease, index);
END
$awa$;
