-- Purpose: moves jobs whose attempts were just closed to where they go.
-- Parameters: the slot of the ready rows; parallel arrays over the ended attempts: position in the arrays of the call
--   (tags), lane and sequence of the attempt batch, index in it, time of the claim; then the arrays of the call:
--   outcomes, routes, delays, texts, results (see end_attempts); the slot for done_entries or NULL; the present.
-- Returns: nothing. An attempt whose job cannot be found is a contradiction and fails the transaction.
-- Locks: ACCESS SHARE on children of the ready slot; ROW EXCLUSIVE on the tables written.
-- Caller: end_attempts.
CREATE OR REPLACE FUNCTION /*schema*/awa.route_ended(
    p_ready_slot smallint, p_tags bigint[], p_lanes bigint[], p_seqs bigint[], p_indexes integer[],
    p_claimed_ats timestamptz[], p_outcomes smallint[], p_routes text[], p_delays_us bigint[], p_texts text[],
    p_results json[], p_done_slot smallint, p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_moved    bigint;
    v_finished bigint[];
    v_dead     bigint[];
BEGIN
    WITH ended AS MATERIALIZED (
        SELECT b.job_id, b.run_lease + 1 AS run_lease, b.created_at, l.priority, l.shard, l.queue, b.max_attempts, b.kind,
               b.args, b.metadata, w.outcome, w.text, w.delay_us, w.result, b.last_error, t.claimed_at,
               -- A retry (2) of the last attempt goes the way of failed jobs, whoever asked for it.
               CASE WHEN w.outcome = 2 AND b.attempt + 1 >= b.max_attempts THEN 'dead' ELSE w.route END AS route,
               -- Snoozes (3) and releases (6) are not charged.
               (b.attempt + CASE WHEN w.outcome IN (3, 6) THEN 0 ELSE 1 END)::smallint AS attempt
        -- Joined, not subscripted: an element of an array of texts is found by walking over those before it.
        FROM /*schema*/awa.claimed_bodies(p_ready_slot, p_tags, p_lanes, p_seqs, p_indexes) AS b
        JOIN unnest(p_tags, p_claimed_ats) AS t (tag, claimed_at) ON t.tag = b.tag
        JOIN unnest(p_outcomes, p_routes, p_delays_us, p_texts, p_results) WITH ORDINALITY
            AS w (outcome, route, delay_us, text, result, tag) ON w.tag = b.tag
        LEFT JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = b.lane_id
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
            state, queue, kind, args, metadata, result, error)
        SELECT e.job_id, e.run_lease, e.created_at, e.claimed_at, p_now, p_done_slot, e.priority, e.shard, e.attempt,
               e.max_attempts, e.route, e.queue, e.kind, e.args, e.metadata, e.result, coalesce(e.text, e.last_error)
        FROM ended AS e WHERE e.route IN ('completed', 'failed', 'cancelled')
    )
    SELECT count(*), array_agg(e.job_id) FILTER (WHERE e.route IN ('completed', 'failed', 'cancelled')),
           array_agg(e.job_id) FILTER (WHERE e.route = 'dead')
    INTO v_moved, v_finished, v_dead
    FROM ended AS e
    WHERE e.route IN ('deferred', 'dead', 'completed', 'failed', 'cancelled') AND e.queue IS NOT NULL;
    IF v_moved <> cardinality(p_tags) THEN
        RAISE EXCEPTION 'of % ended attempts in queue slot % only % have their job', cardinality(p_tags), p_ready_slot, v_moved
            USING ERRCODE = 'AW002', HINT = 'a row of ready_entries, ready_claim_attempt_batches or queue_lanes was changed by hand';
    END IF;
    IF v_finished IS NOT NULL THEN
        PERFORM /*schema*/awa.release_unique_keys(v_finished, 16::smallint);
    END IF;
    IF v_dead IS NOT NULL THEN
        PERFORM /*schema*/awa.release_unique_keys(v_dead, 128::smallint);
    END IF;
END
$awa$;
