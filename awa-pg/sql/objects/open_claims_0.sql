-- Purpose: open_compact_claims of one slot, for the sweeps that look at one child only.
-- Columns: batch_id, nonce, instance_id, claimed_at, deadline_at, open.
-- Parameters: none.
-- Returns: a row per claim batch of the slot.
-- Locks: ACCESS SHARE on the slot's children.
-- Caller: stale_page, deadline_page.
-- depends on: batch_receipts
-- per slot of: claim ring
CREATE OR REPLACE VIEW /*schema*/awa.open_claims_0/*slot*/ AS
SELECT b.batch_id, b.nonce, b.instance_id, b.claimed_at, b.deadline_at,
       CASE WHEN b.members > 1 THEN
           /*schema*/awa.batch_receipts(b.batch_id, b.members)
           - coalesce((SELECT range_agg(c.receipts) FROM /*schema*/awa.lease_claim_closure_batches_0/*slot*/ AS c
                       WHERE c.receipts && /*schema*/awa.batch_receipts(b.batch_id, b.members)), '{}')
       WHEN EXISTS (SELECT FROM /*schema*/awa.lease_claim_closure_batches_0/*slot*/ AS c
                    WHERE c.receipt = (b.batch_id << 10) + 1) THEN '{}'
       ELSE /*schema*/awa.batch_receipts(b.batch_id, b.members) END AS open
FROM /*schema*/awa.lease_claim_batches_0/*slot*/ AS b;
