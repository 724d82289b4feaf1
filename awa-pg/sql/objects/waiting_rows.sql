-- Purpose: the ready rows that a claim has yet to take: neither passed nor cancelled, in the order in which they are due.
-- Columns: those of ready_entries, and run: rows of a lane with the same run are in order by job_id alone, and runs
--   follow each other from 0.
-- Parameters: none.
-- Returns: a row per waiting job.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: repair.
-- depends on: lane_frontiers, is_passed
CREATE OR REPLACE VIEW /*schema*/awa.waiting_rows AS
SELECT w.ready_slot, w.lane_id, w.xid, w.job_id, w.created_at, w.max_attempts, w.attempt, w.run_lease, w.kind, w.args,
       w.metadata, w.last_error,
       count(*) FILTER (WHERE w.job_id <= w.job_before) OVER (
           PARTITION BY w.lane_id ORDER BY w.is_stray, w.generation, w.xid, w.job_id) AS run
FROM (
    SELECT r.ready_slot, r.lane_id, r.xid, r.job_id, r.created_at, r.max_attempts, r.attempt, r.run_lease, r.kind, r.args,
           r.metadata, r.last_error, s.state = 'free' AS is_stray, s.generation,
           lag(r.job_id) OVER (
               PARTITION BY r.lane_id ORDER BY s.state = 'free', s.generation, r.xid, r.job_id) AS job_before
    FROM /*schema*/awa.ready_entries AS r
    JOIN /*schema*/awa.queue_ring_slots AS s ON s.slot = r.ready_slot
    LEFT JOIN /*schema*/awa.lane_frontiers AS f ON f.ready_slot = r.ready_slot AND f.lane_id = r.lane_id
    WHERE NOT /*schema*/awa.is_passed(f.seen, f.part_xids, f.part_jobs, r.xid, r.job_id)
      AND NOT EXISTS (
        SELECT FROM /*schema*/awa.ready_tombstones AS t
        WHERE t.ready_slot = r.ready_slot AND t.lane_id = r.lane_id AND t.job_id = r.job_id
          AND t.run_lease = coalesce(r.run_lease, 0))) AS w;
