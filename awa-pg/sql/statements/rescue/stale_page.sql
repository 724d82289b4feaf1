-- Purpose: a page of the stale sweep over a slot of the claim ring.
-- Parameters: slot, batch to start behind, last batch or NULL, limit.
-- Returns: batch, nonce, claimed_at, open receipts as text, last beat of its instance (NULL: nothing is known of it),
--   whether the instance has withdrawn since, and the staleness time that it asked for.
-- Locks: as the function.
-- Caller: rescue.
SELECT p.batch_id, p.nonce, p.claimed_at, p.open, p.last_beat, p.is_withdrawn, p.staleness_us
FROM /*schema*/awa.stale_page($1::smallint, $2::bigint, $3::bigint, $4::bigint) AS p
