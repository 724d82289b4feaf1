-- Purpose: stores the stale cursor over the row-local claims of a slot, when it moved.
-- Parameters: slot; cursor (claimed_at, job, lease); where the visit had come to (claimed_at, job, lease). NULL: at the start.
-- Returns: nothing.
-- Locks: its row of claim_ring_slots.
-- Caller: rescue.
UPDATE /*schema*/awa.claim_ring_slots
SET row_stale_cursor_at = $2::timestamptz, row_stale_cursor_job = $3::bigint, row_stale_cursor_lease = $4::bigint,
    row_stale_resume_at = $5::timestamptz, row_stale_resume_job = $6::bigint, row_stale_resume_lease = $7::bigint
WHERE slot = $1::smallint
  AND (row_stale_cursor_at, row_stale_cursor_job, row_stale_cursor_lease, row_stale_resume_at, row_stale_resume_job, row_stale_resume_lease)
      IS DISTINCT FROM ($2::timestamptz, $3::bigint, $4::bigint, $5::timestamptz, $6::bigint, $7::bigint)
