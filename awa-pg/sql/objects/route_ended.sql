-- Purpose: moves jobs whose compact claims were just closed to where they go.
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
    v_ended /*schema*/awa.ended_attempt[];
BEGIN
    SELECT array_agg(ROW(
        b.tag, NULL, b.job_id, b.run_lease + 1, b.lane_id, b.xid, b.created_at, t.claimed_at, l.priority, l.shard,
        (b.attempt + 1)::smallint, b.max_attempts, l.queue, b.kind, b.args, b.metadata, b.last_error)::/*schema*/awa.ended_attempt)
    INTO v_ended
    FROM /*schema*/awa.attempt_bodies(p_ready_slot, p_tags, p_lanes, p_seqs, p_indexes) AS b
    JOIN unnest(p_tags, p_claimed_ats) AS t (tag, claimed_at) ON t.tag = b.tag
    LEFT JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = b.lane_id;
    IF cardinality(v_ended) IS DISTINCT FROM cardinality(p_tags) THEN
        RAISE EXCEPTION 'of % ended attempts in queue slot % only % have their job', cardinality(p_tags), p_ready_slot,
            coalesce(cardinality(v_ended), 0)
            USING ERRCODE = 'AW002', CONSTRAINT = 'AW002',
                HINT = 'a row of ready_entries or ready_claim_attempt_batches was changed by hand';
    END IF;
    PERFORM /*schema*/awa.place_ended(v_ended, p_outcomes, p_routes, p_delays_us, p_texts, p_results, p_done_slot, p_now);
END
$awa$;
