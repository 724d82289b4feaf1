-- Purpose: appends the claim of one batch to one slot of the claim ring, whose child the caller has locked by
--   enter_claim_slot.
-- Parameters: batch, lane, sequence of the attempt batch, its slot, number of members, claiming instance, nonce, time of
--   the claim, deadline or NULL.
-- Returns: nothing.
-- Locks: none beyond the child's.
-- Caller: claim_jobs.
-- per slot of: claim ring
CREATE OR REPLACE FUNCTION /*schema*/awa.record_claim_in_0/*slot*/(
    p_batch bigint, p_lane bigint, p_seq bigint, p_ready_slot smallint, p_members integer, p_instance bigint,
    p_nonce bigint, p_now timestamptz, p_deadline timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    INSERT INTO /*schema*/awa.lease_claim_batches_0/*slot*/ (
        batch_id, lane_id, attempt_seq, claimed_at, instance_id, nonce, claim_slot, ready_slot, members, deadline_at)
    VALUES (p_batch, p_lane, p_seq, p_now, p_instance, p_nonce, 0/*slot*/, p_ready_slot, p_members, p_deadline);
END
$awa$;
