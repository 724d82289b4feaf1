-- Purpose: what was closed of compact claims, in one shape. The one spelling of "closed".
-- Columns: claim_slot, outcome, receipts (int8multirange).
-- Parameters: none.
-- Returns: a row per closure row.
-- Locks: ACCESS SHARE on lease_claim_closure_batches.
-- Caller: prune proofs.
CREATE OR REPLACE VIEW /*schema*/awa.closed_receipts AS
SELECT c.claim_slot, c.outcome, coalesce(c.receipts, int8multirange(int8range(c.receipt, c.receipt + 1))) AS receipts
FROM /*schema*/awa.lease_claim_closure_batches AS c;
