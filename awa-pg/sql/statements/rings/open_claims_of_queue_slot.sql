-- Purpose: how many claim slots hold open claims on jobs of a slot of the queue ring. Counts by slot alone: the claims
--   of its older generations were closed before it was freed.
-- Parameters: slot of the queue ring.
-- Returns: the number of claim slots; 0 proves that nothing of it is open. Beside it, of the same snapshot, a number that
--   changes with each claim: as long as that stays, the proof holds.
-- Locks: ACCESS SHARE on the claim ring.
-- Caller: prune.
SELECT pg_catalog.count(*), /*schema*/awa.recorded_claims($1::smallint) FROM /*schema*/awa.claim_ring_slots AS s
WHERE NOT pg_catalog.isempty(
        coalesce((SELECT pg_catalog.range_agg(/*schema*/awa.batch_receipts(b.batch_id, b.members))
                  FROM /*schema*/awa.lease_claim_batches AS b
                  WHERE b.claim_slot = s.slot AND b.ready_slot = $1::smallint), '{}')
      OPERATOR(pg_catalog.-) coalesce((
                  SELECT pg_catalog.range_agg(c.receipts) FROM /*schema*/awa.closed_receipts AS c
                  WHERE c.claim_slot = s.slot), '{}'))
   OR EXISTS (SELECT FROM /*schema*/awa.lease_claims AS l
              WHERE l.claim_slot = s.slot AND l.ready_slot = $1::smallint
                AND NOT EXISTS (SELECT FROM /*schema*/awa.lease_claim_closures AS c
                                WHERE c.claim_slot = l.claim_slot AND c.receipt_id = l.receipt_id))
