-- Purpose: stores the batch deadline cursor of a slot, when it moved.
-- Parameters: slot; cursor (deadline_at, batch); where the visit had come to (deadline_at, batch). NULL: at the start.
-- Returns: nothing.
-- Locks: its row of claim_ring_slots.
-- Caller: rescue.
UPDATE /*schema*/awa.claim_ring_slots
SET batch_deadline_cursor_at = $2::timestamptz, batch_deadline_cursor_batch = $3::bigint,
    batch_deadline_resume_at = $4::timestamptz, batch_deadline_resume_batch = $5::bigint
WHERE slot = $1::smallint
  AND (batch_deadline_cursor_at, batch_deadline_cursor_batch, batch_deadline_resume_at, batch_deadline_resume_batch)
      IS DISTINCT FROM ($2::timestamptz, $3::bigint, $4::timestamptz, $5::bigint)
