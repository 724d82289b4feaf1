-- Purpose: what is open in the claim ring, whatever the shape of the claim. The one spelling of "is this attempt open?".
--   Who looks for one batch or receipt asks open_compact_claims and open_row_claims, which find it by an index.
-- Columns: those that identify the claim, and open (int8multirange of receipts; of a compact claim it is empty when all
--   is closed).
-- Parameters: none.
-- Returns: a row per stored claim batch, and one per open row-local claim.
-- Locks: ACCESS SHARE on the claim ring.
-- Caller: the view jobs, open_attempts, attempts_on_slot, forget_instances.
-- depends on: open_compact_claims, open_row_claims
CREATE OR REPLACE VIEW /*schema*/awa.open_claims AS
SELECT b.claim_slot, b.batch_id, b.nonce, b.instance_id, b.claimed_at, b.deadline_at, b.ready_slot, b.lane_id,
       b.attempt_seq, b.members, b.open
FROM /*schema*/awa.open_compact_claims AS b
UNION ALL
SELECT l.claim_slot, l.receipt_id >> 10, l.nonce, l.instance_id, l.claimed_at, l.deadline_at, l.ready_slot, l.lane_id,
       l.attempt_seq, 1::smallint, int8multirange(int8range(l.receipt_id, l.receipt_id + 1))
FROM /*schema*/awa.open_row_claims AS l;
