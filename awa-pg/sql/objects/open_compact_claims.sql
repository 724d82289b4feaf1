-- Purpose: what of each compact claim is open: claimed minus closed.
-- Columns: those of lease_claim_batches that identify the claim, and open (int8multirange of receipts; empty when all
--   is closed).
-- Parameters: none.
-- Returns: a row per stored claim batch.
-- Locks: ACCESS SHARE on lease_claim_batches and lease_claim_closure_batches.
-- Caller: the view open_claims, look_for_job, are_open, rescue, cancel_in_ring.
-- depends on: batch_receipts
CREATE OR REPLACE VIEW /*schema*/awa.open_compact_claims AS
SELECT b.claim_slot, b.batch_id, b.nonce, b.instance_id, b.claimed_at, b.deadline_at, b.ready_slot, b.lane_id,
       b.attempt_seq, b.members,
       CASE WHEN b.members > 1 THEN
           /*schema*/awa.batch_receipts(b.batch_id, b.members)
           - coalesce((SELECT range_agg(c.receipts) FROM /*schema*/awa.lease_claim_closure_batches AS c
                       WHERE c.claim_slot = b.claim_slot
                         AND c.receipts && /*schema*/awa.batch_receipts(b.batch_id, b.members)), '{}')
       WHEN EXISTS (SELECT FROM /*schema*/awa.lease_claim_closure_batches AS c
                    WHERE c.claim_slot = b.claim_slot AND c.receipt = (b.batch_id << 10) + 1) THEN '{}'
       ELSE /*schema*/awa.batch_receipts(b.batch_id, b.members) END AS open
FROM /*schema*/awa.lease_claim_batches AS b;
