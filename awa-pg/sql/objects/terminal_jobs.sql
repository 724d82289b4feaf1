-- Purpose: the retained history of finished jobs: compact completions, wide rows, and jobs cancelled before they were
--   claimed; without what was deleted.
-- Columns: job_id, state, queue, kind, priority, attempt, max_attempts, run_lease, args, metadata, created_at,
--   claimed_at (NULL where the claim is no longer stored), finalized_at, result, error.
-- Parameters: none.
-- Plan: children have no statistics, and the planner would walk over the whole lane for each batch. So the members of
--   batches are found first (OFFSET 0), and joined to ready rows by job_id + 0, which no index serves: hashed, once.
-- Returns: a row per finished job.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: the view jobs, dashboards.
-- depends on: emitted_attempts
CREATE OR REPLACE VIEW /*schema*/awa.terminal_jobs AS
SELECT r.job_id, 'completed'::text AS state, l.queue, r.kind, l.priority, (coalesce(r.attempt, 0) + 1)::smallint AS attempt,
       r.max_attempts, coalesce(r.run_lease, 0) + 1 AS run_lease, r.args, r.metadata, r.created_at,
       NULL::timestamptz AS claimed_at, e.completed_at AS finalized_at, NULL::json AS result, r.last_error AS error
FROM (SELECT m.ready_slot, m.lane_id, m.job_id, m.row_lease, c.completed_at
      FROM /*schema*/awa.receipt_completion_batches AS c
      JOIN /*schema*/awa.emitted_attempts AS m
          ON m.ready_slot = c.ready_slot AND m.lane_id = c.lane_id AND m.seq = c.attempt_seq
         AND (c.receipts IS NULL OR c.receipts @> m.receipt_id)
      OFFSET 0) AS e
JOIN /*schema*/awa.ready_entries AS r
    ON r.ready_slot = e.ready_slot AND r.lane_id + 0 = e.lane_id AND r.job_id + 0 = e.job_id
   AND coalesce(r.run_lease, 0) = e.row_lease
JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = r.lane_id
WHERE NOT EXISTS (
    SELECT FROM /*schema*/awa.receipt_completion_tombstones AS t
    WHERE t.ready_slot = r.ready_slot AND t.job_id = r.job_id AND t.run_lease = coalesce(r.run_lease, 0) + 1)
UNION ALL
SELECT d.job_id, d.state, d.queue, d.kind, d.priority, d.attempt, d.max_attempts, d.run_lease, d.args, d.metadata,
       d.created_at, d.claimed_at, d.finalized_at, d.result, d.error
FROM /*schema*/awa.done_entries AS d
-- A failed job that was tried again lives on elsewhere.
WHERE NOT EXISTS (
    SELECT FROM /*schema*/awa.receipt_completion_tombstones AS t
    WHERE t.ready_slot = d.done_slot AND t.job_id = d.job_id AND t.run_lease = d.run_lease)
UNION ALL
SELECT r.job_id, 'cancelled', l.queue, r.kind, l.priority, coalesce(r.attempt, 0::smallint), r.max_attempts,
       coalesce(r.run_lease, 0), r.args, r.metadata, r.created_at, NULL, t.cancelled_at, NULL, t.reason
FROM /*schema*/awa.ready_tombstones AS t
JOIN /*schema*/awa.ready_entries AS r
    ON r.ready_slot = t.ready_slot AND r.lane_id + 0 = t.lane_id AND r.job_id + 0 = t.job_id
   AND coalesce(r.run_lease, 0) = t.run_lease
LEFT JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = r.lane_id
WHERE t.moved_at IS NULL AND NOT EXISTS (
    SELECT FROM /*schema*/awa.emitted_attempts AS e
    WHERE e.ready_slot = t.ready_slot AND e.lane_id = t.lane_id AND e.job_id = t.job_id AND e.row_lease = t.run_lease)
  AND NOT EXISTS (
    SELECT FROM /*schema*/awa.receipt_completion_tombstones AS h
    WHERE h.ready_slot = t.ready_slot AND h.job_id = t.job_id AND h.run_lease = t.run_lease)
  -- A row that was moved into the carry-over lives on there.
  AND NOT EXISTS (
    SELECT FROM /*schema*/awa.ready_claim_attempt_batches AS b
    CROSS JOIN LATERAL unnest(coalesce(b.job_ids, ARRAY[b.job_id])) WITH ORDINALITY AS m (job_id, index)
    WHERE b.batch_id IS NULL AND b.ready_slot = t.ready_slot AND b.lane_id = t.lane_id AND m.job_id = t.job_id
      AND coalesce(b.run_leases[m.index], 0) = t.run_lease);
