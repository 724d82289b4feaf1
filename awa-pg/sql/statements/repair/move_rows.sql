-- Purpose: moves the rows that wait into one slot, under transaction numbers that are past for everybody, one per run, so
--   that the order in each lane stays.
-- Parameters: slot.
-- Returns: how many rows.
-- Locks: ROW EXCLUSIVE on ready_entries.
-- Caller: repair, which has made sure that there are numbers enough.
WITH waiting AS MATERIALIZED (
    SELECT w.ready_slot, w.lane_id, w.xid, w.job_id, w.run, max(w.run) OVER () AS last_run
    FROM /*schema*/awa.waiting_rows AS w
), gone AS (
    DELETE FROM /*schema*/awa.ready_entries AS r USING waiting AS w
    WHERE r.ready_slot = w.ready_slot AND r.lane_id = w.lane_id AND r.xid = w.xid AND r.job_id = w.job_id
    RETURNING r.lane_id, r.job_id, r.created_at, r.max_attempts, r.attempt, r.run_lease, r.kind, r.args, r.metadata,
        r.last_error, w.run - w.last_run AS back
), written AS (
    INSERT INTO /*schema*/awa.ready_entries (
        lane_id, xid, job_id, created_at, ready_slot, max_attempts, attempt, run_lease, kind, args, metadata, last_error)
    SELECT g.lane_id, (pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1 + g.back)::text::xid8, g.job_id,
           g.created_at, $1::smallint, g.max_attempts, g.attempt, g.run_lease, g.kind, g.args, g.metadata, g.last_error
    FROM gone AS g
    -- The sort also sees to it that every old row is deleted before a new one is looked up in the unique index.
    ORDER BY g.lane_id, g.back, g.job_id
    RETURNING job_id)
SELECT count(*) FROM written AS w
