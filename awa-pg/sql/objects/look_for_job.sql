-- Purpose: one job by its id, wherever it is in the caller's snapshot. The same rows as the view jobs has, found by indexes
--   only, whatever the rings hold. In one snapshot a job is in one place, so the first look that finds it is right.
-- Parameters: id.
-- Returns: one row with the columns of the view jobs, or none: also when the slots in which the snapshot has the job were
--   truncated meanwhile.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: find_job.
-- depends on: open_compact_claims, open_row_claims
CREATE OR REPLACE FUNCTION /*schema*/awa.look_for_job(p_job bigint)
RETURNS TABLE (
    job_id bigint, state text, queue text, kind text, priority smallint, attempt smallint, max_attempts smallint,
    run_lease bigint, args json, metadata json, created_at timestamptz, run_at timestamptz, deferred_reason text,
    claimed_at timestamptz, finalized_at timestamptz, result json, error text)
LANGUAGE plpgsql STABLE
SET jit = off SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $awa$
DECLARE
    v_row   record;
    v_pass  record;
    v_state text := 'ready';
    v_began timestamptz;
    v_ended timestamptz;
    v_text  text;
    v_moved timestamptz;
BEGIN
    RETURN QUERY
    SELECT d.job_id, 'deferred', d.queue, d.kind, d.priority, d.attempt, d.max_attempts, d.run_lease, d.args, d.metadata,
           d.created_at, d.run_at, d.reason, NULL::timestamptz, NULL::timestamptz, NULL::json, d.last_error
    FROM /*schema*/awa.deferred_jobs AS d WHERE d.job_id = p_job
    UNION ALL
    SELECT q.job_id, 'dead', q.queue, q.kind, q.priority, q.attempt, q.max_attempts, q.run_lease, q.args, q.metadata,
           q.created_at, NULL, NULL, NULL, q.failed_at, NULL, q.error
    FROM /*schema*/awa.dlq_entries AS q WHERE q.job_id = p_job
    UNION ALL
    SELECT c.job_id, 'ready', l.queue, c.kind, l.priority, c.attempt, c.max_attempts, c.run_lease, c.args, c.metadata,
           c.created_at, NULL, NULL, NULL, NULL, NULL, c.last_error
    FROM /*schema*/awa.carried_entries AS c
    JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = c.lane_id WHERE c.job_id = p_job
    UNION ALL
    SELECT l.job_id, CASE WHEN l.waiting_until IS NULL THEN 'running' ELSE 'waiting' END, l.queue, l.kind, l.priority, l.attempt,
           l.max_attempts, l.run_lease, l.args, l.metadata, l.created_at, NULL, NULL,
           CASE WHEN l.waiting_until IS NULL THEN l.claimed_at END, NULL, NULL, l.last_error
    FROM /*schema*/awa.leases AS l WHERE l.job_id = p_job
    UNION ALL
    SELECT d.job_id, d.state, d.queue, d.kind, d.priority, d.attempt, d.max_attempts, d.run_lease, d.args, d.metadata,
           d.created_at, NULL, NULL, NULL, d.finalized_at, d.result, d.error
    FROM /*schema*/awa.done_entries AS d
    WHERE d.job_id = p_job AND NOT EXISTS (
        SELECT FROM /*schema*/awa.receipt_completion_tombstones AS h
        WHERE h.ready_slot = d.done_slot AND h.job_id = d.job_id AND h.run_lease = d.run_lease);
    IF FOUND THEN
        RETURN;
    END IF;
    -- What is left lives by its newest ready row: it waits, was cancelled while it waited, runs, or completed.
    SELECT n.ready_slot, n.lane_id, n.xid, n.run_lease INTO v_row FROM /*schema*/awa.newest_ready_row(p_job) AS n;
    IF v_row.lane_id IS NULL THEN
        RETURN;
    END IF;
    SELECT p.seq, p.batch_id, p.member INTO v_pass
    FROM /*schema*/awa.passing(v_row.ready_slot, v_row.lane_id, v_row.xid, p_job) AS p;
    IF v_pass.member IS NULL THEN
        SELECT t.cancelled_at, t.reason, t.moved_at INTO v_ended, v_text, v_moved
        FROM /*schema*/awa.ready_tombstones AS t
        WHERE t.ready_slot = v_row.ready_slot AND t.lane_id = v_row.lane_id AND t.job_id = p_job
          AND t.run_lease = v_row.run_lease;
        IF v_moved IS NOT NULL THEN
            -- It went to another lane, and what it began there was reclaimed before this row.
            RETURN;
        ELSIF v_ended IS NOT NULL THEN
            v_state := 'cancelled';
        ELSIF v_pass.seq IS NOT NULL THEN
            RETURN;
        END IF;
    ELSE
        SELECT o.claimed_at INTO v_began
        FROM (SELECT c.claimed_at FROM /*schema*/awa.open_compact_claims AS c
              WHERE c.batch_id = v_pass.batch_id AND c.open @> (v_pass.batch_id << 10) + v_pass.member
              UNION ALL
              SELECT l.claimed_at FROM /*schema*/awa.open_row_claims AS l
              WHERE l.receipt_id = (v_pass.batch_id << 10) + v_pass.member) AS o;
        IF FOUND THEN
            v_state := 'running';
        ELSE
            v_state := 'completed';
            SELECT c.completed_at INTO v_ended
            FROM /*schema*/awa.receipt_completion_batches AS c
            WHERE c.ready_slot = v_row.ready_slot AND c.attempt_seq = v_pass.seq AND c.lane_id = v_row.lane_id
              AND (c.receipts IS NULL OR c.receipts @> (v_pass.batch_id << 10) + v_pass.member);
            -- Moved into the carry-over (without a batch id), or ended in another way, and gone from there since.
            IF NOT FOUND THEN
                RETURN;
            END IF;
        END IF;
    END IF;
    RETURN QUERY
    SELECT r.job_id, v_state, coalesce(l.queue, h.queue), r.kind, coalesce(l.priority, h.priority),
           (coalesce(r.attempt, 0) + a.attempts)::smallint, r.max_attempts, v_row.run_lease + a.attempts, r.args, r.metadata,
           r.created_at, NULL::timestamptz, NULL::text, v_began, v_ended, NULL::json, coalesce(v_text, r.last_error)
    FROM /*schema*/awa.ready_entries AS r
    CROSS JOIN (SELECT CASE WHEN v_state IN ('running', 'completed') THEN 1 ELSE 0 END) AS a (attempts)
    LEFT JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = r.lane_id
    LEFT JOIN LATERAL (
        SELECT n.queue, n.priority FROM /*schema*/awa.lane_hints AS n
        WHERE l.lane_id IS NULL AND n.lane_id = r.lane_id LIMIT 1) AS h ON true
    WHERE r.ready_slot = v_row.ready_slot AND r.lane_id = v_row.lane_id AND r.xid = v_row.xid AND r.job_id = p_job
      AND (v_ended IS NULL OR NOT EXISTS (
        SELECT FROM /*schema*/awa.receipt_completion_tombstones AS h
        WHERE h.ready_slot = v_row.ready_slot AND h.job_id = p_job AND h.run_lease = v_row.run_lease + a.attempts));
END
$awa$;
