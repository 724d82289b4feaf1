-- Purpose: every job, once, wherever it is. Read it in READ COMMITTED and in one statement: truncation is not subject
--   to snapshots.
-- Columns: job_id, state, queue, kind, priority, attempt (charged so far, an open one included), max_attempts, run_lease,
--   args, metadata, created_at, run_at and deferred_reason (deferred), claimed_at (running), finalized_at,
--   result, error.
-- Parameters: none.
-- Plan: children have no statistics. What is open is found first (OFFSET 0), and each of its jobs by index.
-- Returns: a row per job.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: get, list, queues, census; dashboards.
-- depends on: emitted_attempts, open_claims, lane_frontiers, is_passed, terminal_jobs
CREATE OR REPLACE VIEW /*schema*/awa.jobs AS
SELECT r.job_id, 'ready'::text AS state, coalesce(l.queue, h.queue) AS queue, r.kind,
       coalesce(l.priority, h.priority) AS priority, coalesce(r.attempt, 0::smallint) AS attempt, r.max_attempts,
       coalesce(r.run_lease, 0) AS run_lease, r.args, r.metadata, r.created_at, NULL::timestamptz AS run_at,
       NULL::text AS deferred_reason, NULL::timestamptz AS claimed_at, NULL::timestamptz AS finalized_at,
       NULL::json AS result, r.last_error AS error
FROM /*schema*/awa.ready_entries AS r
LEFT JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = r.lane_id
LEFT JOIN LATERAL (
    SELECT n.queue, n.priority FROM /*schema*/awa.lane_hints AS n WHERE l.lane_id IS NULL AND n.lane_id = r.lane_id LIMIT 1
) AS h ON true
LEFT JOIN /*schema*/awa.lane_frontiers AS f ON f.ready_slot = r.ready_slot AND f.lane_id = r.lane_id
WHERE NOT /*schema*/awa.is_passed(f.seen, f.part_xids, f.part_jobs, r.xid, r.job_id)
  AND NOT EXISTS (
    SELECT FROM /*schema*/awa.ready_tombstones AS t
    WHERE t.ready_slot = r.ready_slot AND t.lane_id = r.lane_id AND t.job_id = r.job_id
      AND t.run_lease = coalesce(r.run_lease, 0))
UNION ALL
SELECT r.job_id, 'running', l.queue, r.kind, l.priority, (coalesce(r.attempt, 0) + 1)::smallint, r.max_attempts,
       coalesce(r.run_lease, 0) + 1, r.args, r.metadata, r.created_at, NULL, NULL, o.claimed_at, NULL, NULL, r.last_error
FROM (SELECT c.ready_slot, c.lane_id, c.attempt_seq, c.claimed_at, c.open FROM /*schema*/awa.open_claims AS c
      WHERE NOT isempty(c.open) OFFSET 0) AS o
CROSS JOIN LATERAL (
    SELECT m.job_id, m.row_lease, m.first_xid, m.first_job, m.last_xid FROM /*schema*/awa.emitted_attempts AS m
    WHERE m.ready_slot = o.ready_slot AND m.lane_id = o.lane_id AND m.seq = o.attempt_seq AND o.open @> m.receipt_id
    OFFSET 0) AS e
CROSS JOIN LATERAL (
    SELECT n.job_id, n.kind, n.attempt, n.max_attempts, n.run_lease, n.args, n.metadata, n.created_at, n.last_error
    FROM /*schema*/awa.ready_entries AS n
    WHERE n.ready_slot = o.ready_slot AND n.lane_id = o.lane_id AND (n.xid, n.job_id) >= (e.first_xid, e.first_job)
      AND n.xid <= e.last_xid AND n.job_id = e.job_id AND coalesce(n.run_lease, 0) = e.row_lease
    ORDER BY n.xid, n.job_id LIMIT 1) AS r
JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = o.lane_id
UNION ALL
SELECT c.job_id, 'ready', l.queue, c.kind, l.priority, c.attempt, c.max_attempts, c.run_lease, c.args, c.metadata,
       c.created_at, NULL, NULL, NULL, NULL, NULL, c.last_error
FROM /*schema*/awa.carried_entries AS c
JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = c.lane_id
UNION ALL
SELECT l.job_id, CASE WHEN l.waiting_until IS NULL THEN 'running' ELSE 'waiting' END, l.queue, l.kind, l.priority,
       l.attempt, l.max_attempts, l.run_lease, l.args, l.metadata, l.created_at, NULL, NULL,
       CASE WHEN l.waiting_until IS NULL THEN l.claimed_at END, NULL, NULL, l.last_error
FROM /*schema*/awa.leases AS l
UNION ALL
SELECT d.job_id, 'deferred', d.queue, d.kind, d.priority, d.attempt, d.max_attempts, d.run_lease, d.args, d.metadata,
       d.created_at, d.run_at, d.reason, NULL, NULL, NULL, d.last_error
FROM /*schema*/awa.deferred_jobs AS d
UNION ALL
SELECT q.job_id, 'dead', q.queue, q.kind, q.priority, q.attempt, q.max_attempts, q.run_lease, q.args, q.metadata,
       q.created_at, NULL, NULL, NULL, q.failed_at, NULL, q.error
FROM /*schema*/awa.dlq_entries AS q
UNION ALL
SELECT t.job_id, t.state, t.queue, t.kind, t.priority, t.attempt, t.max_attempts, t.run_lease, t.args, t.metadata,
       t.created_at, NULL, NULL, NULL, t.finalized_at, t.result, t.error
FROM /*schema*/awa.terminal_jobs AS t;
