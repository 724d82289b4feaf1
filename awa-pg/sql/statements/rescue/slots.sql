-- Purpose: the slots of the claim ring that may hold open claims, with their rescue cursors.
-- Parameters: present.
-- Returns: slot; the present; stale cursor and where its visit had come to, each as (claimed_at, batch); batch deadline
--   cursor and where its visit had come to, each as (deadline_at, batch); whether there are row-local claims in the slot;
--   of these the stale cursor and where its visit had come to, each as (claimed_at, job, lease), and the same for deadlines.
--   NULL: at the start.
-- Locks: none.
-- Caller: rescue.
SELECT s.slot, coalesce($1::timestamptz, clock_timestamp()),
       s.stale_cursor_at, s.stale_cursor_batch, s.stale_resume_at, s.stale_resume_batch,
       s.batch_deadline_cursor_at, s.batch_deadline_cursor_batch, s.batch_deadline_resume_at,
       s.batch_deadline_resume_batch,
       pg_catalog.pg_relation_size(('/*schema*/awa.lease_claims_' || s.slot)::pg_catalog.regclass) > 0,
       s.row_stale_cursor_at, s.row_stale_cursor_job, s.row_stale_cursor_lease,
       s.row_stale_resume_at, s.row_stale_resume_job, s.row_stale_resume_lease,
       s.deadline_cursor_at, s.deadline_cursor_job, s.deadline_cursor_lease,
       s.deadline_resume_at, s.deadline_resume_job, s.deadline_resume_lease
FROM /*schema*/awa.claim_ring_slots AS s
WHERE s.state <> 'free' OR s.slot = ((SELECT p.last_value FROM /*schema*/awa.claim_ring_pointer AS p) & 63)
ORDER BY s.generation
