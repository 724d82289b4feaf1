-- Purpose: puts jobs whose attempts were just ended to where they go. The one spelling of it, whatever the shape of the
--   claim was.
-- Parameters: the ended attempts; then the arrays of the call (see end_attempts), into which their tags are positions:
--   outcomes, routes, delays, texts, results; the slot for done_entries, or NULL where the routes ask for none; the present.
-- Returns: nothing. An attempt whose job goes nowhere is a contradiction and fails the transaction.
-- Locks: ROW EXCLUSIVE on the tables written, a child of done_entries also without p_done_slot when a job failed for good;
--    where some job is unique, as release_unique_keys.
-- Caller: route_ended, end_leases.
CREATE OR REPLACE FUNCTION /*schema*/awa.place_ended(
    p_ended /*schema*/awa.ended_attempt[], p_outcomes smallint[], p_routes text[], p_delays_us bigint[], p_texts text[],
    p_results json[], p_done_slot smallint, p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_moved    bigint;
    v_queues   text[];
    v_finished bigint[];
    v_dead     bigint[];
BEGIN
    WITH ended AS MATERIALIZED (
        SELECT b.job_id, b.run_lease, b.lane_id, b.xid, b.created_at, b.claimed_at, b.priority, b.shard, b.queue,
               b.max_attempts, b.kind, b.args, b.metadata, b.last_error, w.outcome, coalesce(c.reason, w.text) AS text, w.delay_us,
               w.result,
               -- A job that was to live on ends if somebody has asked for it meanwhile.
               -- A retry (2) of the last attempt goes the way of failed jobs, whoever asked for it.
               CASE WHEN c.reason IS NOT NULL THEN 'cancelled'
                    WHEN w.route = 'dead' OR w.outcome = 2 AND b.attempt >= b.max_attempts
                    THEN /*schema*/awa.failed_route(b.queue) ELSE w.route END AS route,
               -- Snoozes (3), releases (6) and attempts that go on (10) are not charged.
               (b.attempt - CASE WHEN w.outcome IN (3, 6, 10) THEN 1 ELSE 0 END)::smallint AS attempt
        FROM unnest(p_ended) AS b
        -- Joined, not subscripted: an element of an array of texts is found by walking over those before it.
        JOIN unnest(p_outcomes, p_routes, p_delays_us, p_texts, p_results) WITH ORDINALITY
            AS w (outcome, route, delay_us, text, result, tag) ON w.tag = b.tag
        CROSS JOIN LATERAL (
            SELECT CASE WHEN w.route IN ('carried', 'deferred') AND NOT (w.outcome = 2 AND b.attempt >= b.max_attempts)
                        THEN /*schema*/awa.requested_cancel(b.job_id) END AS reason) AS c
    ), carried AS (
        INSERT INTO /*schema*/awa.carried_entries (
            lane_id, xid, job_id, created_at, run_lease, attempt, max_attempts, kind, args, metadata, last_error)
        SELECT e.lane_id, e.xid, e.job_id, e.created_at, e.run_lease, e.attempt, e.max_attempts, e.kind, e.args,
               e.metadata, coalesce(e.text, e.last_error)
        FROM ended AS e WHERE e.route = 'carried'
    ), deferred AS (
        INSERT INTO /*schema*/awa.deferred_jobs (
            job_id, run_lease, run_at, created_at, priority, shard, attempt, max_attempts, reason, queue, kind, args,
            metadata, last_error)
        SELECT e.job_id, e.run_lease, p_now + e.delay_us * interval '1 microsecond', e.created_at, e.priority, e.shard,
               e.attempt, e.max_attempts,
               CASE e.outcome WHEN 3 THEN 'snooze' WHEN 6 THEN 'release' ELSE 'retry' END,
               e.queue, e.kind, e.args, e.metadata, coalesce(e.text, e.last_error)
        FROM ended AS e WHERE e.route = 'deferred'
    ), dead AS (
        INSERT INTO /*schema*/awa.dlq_entries (
            job_id, run_lease, created_at, failed_at, priority, shard, attempt, max_attempts, outcome, queue, kind, args,
            metadata, error, unique_key, unique_states)
        SELECT e.job_id, e.run_lease, e.created_at, p_now, e.priority, e.shard, e.attempt, e.max_attempts, e.outcome,
               e.queue, e.kind, e.args, e.metadata, coalesce(e.text, ''), u.key, u.states
        FROM ended AS e
        -- What it gives back now, to be taken again by a retry: not what it still holds (128), nor what it gave back when
        -- it was claimed (2).
        LEFT JOIN /*schema*/awa.unique_claims AS u ON u.job_id = e.job_id AND u.states & 130 = 2
        WHERE e.route = 'dead'
    ), done AS (
        INSERT INTO /*schema*/awa.done_entries (
            job_id, run_lease, created_at, claimed_at, finalized_at, done_slot, priority, shard, attempt, max_attempts,
            state, queue, kind, args, metadata, result, error, unique_key, unique_states)
        SELECT e.job_id, e.run_lease, e.created_at, e.claimed_at, p_now,
               coalesce(p_done_slot, /*schema*/awa.enter_done_slot()), e.priority, e.shard, e.attempt,
               e.max_attempts, e.route, e.queue, e.kind, e.args, e.metadata, e.result, coalesce(e.text, e.last_error),
               u.key, u.states
        FROM ended AS e
        -- As for dead jobs: what it gives back now.
        LEFT JOIN /*schema*/awa.unique_claims AS u ON e.route = 'failed' AND u.job_id = e.job_id AND u.states & 2 = 2
        WHERE e.route IN ('completed', 'failed', 'cancelled')
    )
    SELECT count(*) FILTER (WHERE e.route IN ('carried', 'deferred', 'dead', 'completed', 'failed', 'cancelled')
                              AND e.queue IS NOT NULL),
           array_agg(DISTINCT e.queue) FILTER (WHERE e.route = 'carried'),
           array_agg(e.job_id) FILTER (WHERE e.route IN ('completed', 'failed', 'cancelled')),
           array_agg(e.job_id) FILTER (WHERE e.route = 'dead')
    INTO v_moved, v_queues, v_finished, v_dead FROM ended AS e;
    IF v_moved <> cardinality(p_ended) THEN
        RAISE EXCEPTION 'of % ended attempts only % have their job and a place for it', cardinality(p_ended), v_moved
            USING ERRCODE = 'AW002', CONSTRAINT = 'AW002',
                HINT = 'a row of queue_lanes was changed by hand, or a caller used an unknown route';
    END IF;
    IF v_finished IS NOT NULL THEN
        PERFORM /*schema*/awa.release_unique_keys(v_finished, 16::smallint);
        PERFORM /*schema*/awa.forget_notes(v_finished);
    END IF;
    IF v_dead IS NOT NULL THEN
        PERFORM /*schema*/awa.release_unique_keys(v_dead, 128::smallint);
    END IF;
    IF v_queues IS NOT NULL THEN
        PERFORM /*schema*/awa.wake(v_queues);
    END IF;
END
$awa$;
