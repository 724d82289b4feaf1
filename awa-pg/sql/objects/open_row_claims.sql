-- Purpose: the row-local claims that are open: claimed and not closed.
-- Columns: those of lease_claims.
-- Parameters: none.
-- Returns: a row per open claim.
-- Locks: ACCESS SHARE on lease_claims and lease_claim_closures.
-- Caller: the view open_claims, look_for_job, are_open, rescue, cancel_in_ring.
CREATE OR REPLACE VIEW /*schema*/awa.open_row_claims AS
SELECT l.claim_slot, l.receipt_id, l.nonce, l.instance_id, l.job_id, l.run_lease, l.claimed_at, l.deadline_at, l.ready_slot,
       l.lane_id, l.attempt_seq
FROM /*schema*/awa.lease_claims AS l
WHERE NOT EXISTS (
    SELECT FROM /*schema*/awa.lease_claim_closures AS c
    WHERE c.claim_slot = l.claim_slot AND c.receipt_id = l.receipt_id);
