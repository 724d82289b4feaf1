-- Purpose: the next claim batches of a slot after the stale cursor, in the order in which they were claimed.
-- Parameters: batch to start behind, last batch or NULL, limit.
-- Returns: batch, nonce, claimed_at, open receipts as text, last beat of its instance (NULL: nothing is known of it),
--   whether the instance has withdrawn since.
--   Batches that are too new are in the page as well: the sweep stops at them.
-- Locks: ACCESS SHARE on the slot's children.
-- Caller: rescue.
-- per slot of: claim ring
SELECT b.batch_id, b.nonce, b.claimed_at, b.open::text,
       (SELECT i.last_beat FROM /*schema*/awa.runtime_instances AS i WHERE i.instance_id = b.instance_id),
       EXISTS (SELECT FROM /*schema*/awa.runtime_instances AS i
               WHERE i.instance_id = b.instance_id AND i.retired_at >= b.claimed_at)
FROM /*schema*/awa.open_claims_0/*slot*/ AS b
WHERE b.batch_id > $1::bigint AND ($2::bigint IS NULL OR b.batch_id <= $2::bigint)
ORDER BY b.batch_id LIMIT $3::bigint
