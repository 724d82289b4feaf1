-- Purpose: the slots of the claim ring that may hold open claims, with their rescue cursors.
-- Parameters: present.
-- Returns: slot; stale cursor and where its visit had come to, each as (claimed_at, batch); batch deadline cursor and
--   where its visit had come to, each as (deadline_at, batch); the present. NULL: at the start.
-- Locks: none.
-- Caller: rescue.
SELECT s.slot, s.stale_cursor_at, s.stale_cursor_batch, s.stale_resume_at, s.stale_resume_batch,
       s.batch_deadline_cursor_at, s.batch_deadline_cursor_batch, s.batch_deadline_resume_at,
       s.batch_deadline_resume_batch, coalesce($1::timestamptz, clock_timestamp())
FROM /*schema*/awa.claim_ring_slots AS s
WHERE s.state <> 'free' OR s.slot = ((SELECT p.last_value FROM /*schema*/awa.claim_ring_pointer AS p) & 63)
ORDER BY s.generation
