-- Purpose: stores the stale cursor of a slot, when it moved.
-- Parameters: slot; cursor (claimed_at, batch); where the visit had come to (claimed_at, batch). NULL: at the start.
-- Returns: nothing.
-- Locks: its row of claim_ring_slots.
-- Caller: rescue.
UPDATE /*schema*/awa.claim_ring_slots
SET stale_cursor_at = $2::timestamptz, stale_cursor_batch = $3::bigint, stale_resume_at = $4::timestamptz,
    stale_resume_batch = $5::bigint
WHERE slot = $1::smallint
  AND (stale_cursor_at, stale_cursor_batch, stale_resume_at, stale_resume_batch)
      IS DISTINCT FROM ($2::timestamptz, $3::bigint, $4::timestamptz, $5::bigint)
