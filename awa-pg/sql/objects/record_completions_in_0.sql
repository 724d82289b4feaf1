-- Purpose: appends the compact history of members that ended well, to the slot of their ready rows, lets them give their keys
--   back, and forgets what they noted. The open claims, which end with this transaction, keep that slot from being reclaimed.
-- Parameters: parallel arrays, one element per closure: lane and sequence of the attempt batch, receipts, whether they
--   are the whole batch; the present.
-- Returns: nothing.
-- Locks: ROW EXCLUSIVE on the child of receipt_completion_batches; where some job is unique, as release_unique_keys.
-- Caller: complete_attempts.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.record_completions_in_0/*slot*/(
    p_lanes bigint[], p_seqs bigint[], p_receipts int8multirange[], p_are_whole boolean[], p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_jobs bigint[];
BEGIN
    IF cardinality(p_receipts) = 1 AND p_receipts[1] = int8multirange(range_merge(p_receipts[1])) THEN
        -- One closure without gaps, as most are.
        INSERT INTO /*schema*/awa.receipt_completion_batches_0/*slot*/ (
            lane_id, attempt_seq, completed_at, ready_slot, jobs, receipts)
        VALUES (p_lanes[1], p_seqs[1], p_now, 0/*slot*/, upper(p_receipts[1]) - lower(p_receipts[1]),
            CASE WHEN NOT p_are_whole[1] THEN p_receipts[1] END);
    ELSE
        INSERT INTO /*schema*/awa.receipt_completion_batches_0/*slot*/ (
            lane_id, attempt_seq, completed_at, ready_slot, jobs, receipts)
        SELECT c.lane, c.seq, p_now, 0/*slot*/,
               (SELECT sum(upper(r) - lower(r)) FROM unnest(c.receipts) AS r)::smallint,
               CASE WHEN NOT c.is_whole THEN c.receipts END
        FROM unnest(p_lanes, p_seqs, p_receipts, p_are_whole) AS c (lane, seq, receipts, is_whole);
    END IF;
    IF pg_relation_size('/*schema*/awa.unique_claims') > 0 OR pg_relation_size('/*schema*/awa.attempt_state') > 0 THEN
        v_jobs := ARRAY(
            SELECT m.job
            FROM unnest(p_lanes, p_seqs, p_receipts, p_are_whole) AS c (lane, seq, receipts, is_whole)
            CROSS JOIN LATERAL (
                SELECT a.batch_id, a.job_id, a.job_ids FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS a
                WHERE a.lane_id = c.lane AND a.seq = c.seq LIMIT 1) AS b
            CROSS JOIN LATERAL unnest(coalesce(b.job_ids, ARRAY[b.job_id])) WITH ORDINALITY AS m (job, index)
            WHERE c.is_whole OR c.receipts @> (b.batch_id << 10) + m.index);
        PERFORM /*schema*/awa.release_unique_keys(v_jobs, 16::smallint);
        PERFORM /*schema*/awa.forget_notes(v_jobs);
    END IF;
END
$awa$;
