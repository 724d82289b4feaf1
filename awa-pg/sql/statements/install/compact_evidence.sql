-- Purpose: how much there is that versions of before the rings cannot read.
-- Parameters: none.
-- Returns: rows of lease_claim_batches, rows of lease_claim_closure_batches.
-- Locks: ACCESS SHARE on the claim ring.
-- Caller: downgrade.
SELECT (SELECT count(*) FROM /*schema*/awa.lease_claim_batches), (SELECT count(*) FROM /*schema*/awa.lease_claim_closure_batches)
