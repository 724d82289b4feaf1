-- Purpose: how many receipts of a slot of the claim ring are open.
-- Parameters: slot of the claim ring.
-- Returns: the number; 0 proves that every claim in it is closed. Beside it, of the same snapshot, how many claims are
--   stored: as long as that stays, the proof holds.
-- Locks: ACCESS SHARE on the slot's children and the parents.
-- Caller: prune.
SELECT coalesce((SELECT pg_catalog.sum(pg_catalog.upper(r) - pg_catalog.lower(r)) FROM pg_catalog.unnest(
        coalesce((SELECT pg_catalog.range_agg(/*schema*/awa.batch_receipts(b.batch_id, b.members))
                  FROM /*schema*/awa.lease_claim_batches AS b WHERE b.claim_slot = $1::smallint), '{}')
      OPERATOR(pg_catalog.-) coalesce((
                  SELECT pg_catalog.range_agg(c.receipts) FROM /*schema*/awa.closed_receipts AS c
                  WHERE c.claim_slot = $1::smallint), '{}')) AS r), 0)::bigint
     + (SELECT pg_catalog.count(*) FROM /*schema*/awa.lease_claims AS l
        WHERE l.claim_slot = $1::smallint
          AND NOT EXISTS (SELECT FROM /*schema*/awa.lease_claim_closures AS c
                          WHERE c.claim_slot = l.claim_slot AND c.receipt_id = l.receipt_id)),
       /*schema*/awa.stored_claims($1::smallint)
