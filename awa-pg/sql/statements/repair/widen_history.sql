-- Purpose: moves the history in a slot of the queue ring into another one, each job as a wide row, but for what was deleted. No open claim may refer
--   to the slot.
-- Parameters: slot, slot that takes the history.
-- Returns: how many jobs.
-- Locks: ROW EXCLUSIVE on done_entries.
-- Caller: repair.
WITH moved AS (
    DELETE FROM /*schema*/awa.done_entries AS d WHERE d.done_slot = $1::smallint
    RETURNING d.job_id, d.run_lease, d.created_at, d.claimed_at, d.finalized_at, d.priority, d.shard, d.attempt,
        d.max_attempts, d.state, d.queue, d.kind, d.args, d.metadata, d.result, d.error, d.unique_key, d.unique_states,
        EXISTS (SELECT FROM /*schema*/awa.receipt_completion_tombstones AS h
                WHERE h.ready_slot = d.done_slot AND h.job_id = d.job_id AND h.run_lease = d.run_lease) AS is_hidden
), ended AS (
    SELECT r.job_id, t.run_lease, r.created_at, t.claimed_at, t.finalized_at, t.priority, l.shard, t.attempt,
           r.max_attempts, t.state, t.queue, r.kind, r.args, r.metadata, t.result, t.error
    FROM /*schema*/awa.ready_entries AS r
    JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = r.lane_id
    JOIN /*schema*/awa.terminal_jobs AS t
        ON t.job_id = r.job_id AND t.run_lease - coalesce(r.run_lease, 0) = CASE t.state WHEN 'completed' THEN 1 ELSE 0 END
    WHERE r.ready_slot = $1::smallint
      AND NOT EXISTS (SELECT FROM /*schema*/awa.done_entries AS d WHERE d.job_id = t.job_id AND d.run_lease = t.run_lease)
), written AS (
    INSERT INTO /*schema*/awa.done_entries (
        job_id, run_lease, created_at, claimed_at, finalized_at, done_slot, priority, shard, attempt, max_attempts,
        state, queue, kind, args, metadata, result, error, unique_key, unique_states)
    SELECT a.job_id, a.run_lease, a.created_at, a.claimed_at, a.finalized_at, $2::smallint, a.priority, a.shard, a.attempt,
           a.max_attempts, a.state, a.queue, a.kind, a.args, a.metadata, a.result, a.error, a.unique_key, a.unique_states
    FROM (SELECT m.job_id, m.run_lease, m.created_at, m.claimed_at, m.finalized_at, m.priority, m.shard, m.attempt,
                 m.max_attempts, m.state, m.queue, m.kind, m.args, m.metadata, m.result, m.error, m.unique_key, m.unique_states
          FROM moved AS m WHERE NOT m.is_hidden
          UNION ALL
          SELECT e.job_id, e.run_lease, e.created_at, e.claimed_at, e.finalized_at, e.priority, e.shard, e.attempt,
                 e.max_attempts, e.state, e.queue, e.kind, e.args, e.metadata, e.result, e.error, NULL, NULL
          FROM ended AS e) AS a
    RETURNING job_id)
SELECT count(*) FROM written AS w
