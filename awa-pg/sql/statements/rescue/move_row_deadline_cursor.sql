-- Purpose: stores the deadline cursor over the row-local claims of a slot, when it moved.
-- Parameters: slot; cursor (deadline_at, job, lease); where the visit had come to (deadline_at, job, lease). NULL: at the start.
-- Returns: nothing.
-- Locks: its row of claim_ring_slots.
-- Caller: rescue.
UPDATE /*schema*/awa.claim_ring_slots
SET deadline_cursor_at = $2::timestamptz, deadline_cursor_job = $3::bigint, deadline_cursor_lease = $4::bigint,
    deadline_resume_at = $5::timestamptz, deadline_resume_job = $6::bigint, deadline_resume_lease = $7::bigint
WHERE slot = $1::smallint
  AND (deadline_cursor_at, deadline_cursor_job, deadline_cursor_lease, deadline_resume_at, deadline_resume_job, deadline_resume_lease)
      IS DISTINCT FROM ($2::timestamptz, $3::bigint, $4::bigint, $5::timestamptz, $6::bigint, $7::bigint)
