-- Purpose: open attempts of compact claims that keep a slot.
-- Parameters: slot of the queue ring that they were claimed from, or NULL; slot of the claim ring, or NULL; limit.
-- Returns: claim slot, nonce, receipt.
-- Locks: ACCESS SHARE on the claim ring.
-- Caller: Maintainer::unpin.
SELECT o.claim_slot, o.nonce, m.receipt
FROM /*schema*/awa.open_claims AS o
CROSS JOIN LATERAL pg_catalog.unnest(o.open) AS r (run)
CROSS JOIN LATERAL pg_catalog.generate_series(
    pg_catalog.lower(r.run), pg_catalog.upper(r.run) - 1) AS m (receipt)
WHERE ($1::smallint IS NULL OR o.ready_slot = $1::smallint) AND ($2::smallint IS NULL OR o.claim_slot = $2::smallint)
LIMIT $3::bigint
