-- Purpose: closes members of compact claims of one claim slot: what is open among the wanted is closed, once. The
--   constraints of the child are the last word; what is read before only says what to try.
-- Parameters: outcome; parallel arrays, one element per batch in ascending order: batch, nonce, wanted receipts.
-- Returns: parallel arrays, one element per closure row written: batch, receipts closed, lane, slot and sequence of the
--   attempt batch, whether the whole batch was closed by it, and by whom and when the batch was claimed. A batch that is
--   not there, or has another nonce, closes nothing.
-- Locks: ROW EXCLUSIVE on the child of lease_claim_closure_batches; waits for a transaction that is closing the same
--   receipts, no longer than lock_timeout, and gives up in the same way (55P03) when that happens 8 times: what is left
--   is open, and must not be taken for closed.
-- Caller: complete_attempts, end_attempts.
-- per slot of: claim ring
CREATE OR REPLACE FUNCTION /*schema*/awa.close_receipts_0/*slot*/(
    p_outcome smallint, p_batches bigint[], p_nonces bigint[], p_receipts int8multirange[],
    OUT batches bigint[], OUT closed int8multirange[], OUT lanes bigint[], OUT ready_slots smallint[],
    OUT seqs bigint[], OUT are_whole boolean[], OUT claimed_ats timestamptz[])
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_open record;
    v_done record;
BEGIN
    -- Batches are looked up one by one: a planner without statistics would rather hash all claims of the slot.
    FOR v_turn IN 1..8 LOOP
        SELECT array_agg(o.rest ORDER BY o.batch) AS receipts, array_agg(o.members ORDER BY o.batch) AS members,
               count(*) AS rows
        INTO v_open
        FROM (SELECT w.batch, b.members,
                     CASE WHEN b.members > 1 THEN
                         w.receipts * /*schema*/awa.batch_receipts(b.batch_id, b.members)
                         - coalesce((SELECT range_agg(c.receipts)
                                     FROM /*schema*/awa.lease_claim_closure_batches_0/*slot*/ AS c
                                     WHERE c.receipts && w.receipts), '{}')
                     WHEN EXISTS (SELECT FROM /*schema*/awa.lease_claim_closure_batches_0/*slot*/ AS c
                                  WHERE c.receipt = (b.batch_id << 10) + 1) THEN '{}'
                     ELSE w.receipts * /*schema*/awa.batch_receipts(b.batch_id, b.members) END AS rest
              FROM unnest(p_batches, p_nonces, p_receipts) AS w (batch, nonce, receipts)
              CROSS JOIN LATERAL (
                  SELECT l.batch_id, l.members FROM /*schema*/awa.lease_claim_batches_0/*slot*/ AS l
                  WHERE l.batch_id = w.batch AND l.nonce = w.nonce LIMIT 1) AS b) AS o
        WHERE NOT isempty(o.rest);
        EXIT WHEN v_open.rows = 0;
        WITH written AS (
            INSERT INTO /*schema*/awa.lease_claim_closure_batches_0/*slot*/ (claim_slot, outcome, receipt, receipts)
            SELECT 0/*slot*/, p_outcome, CASE WHEN o.members = 1 THEN lower(o.receipts) END,
                   CASE WHEN o.members > 1 THEN o.receipts END
            FROM unnest(v_open.receipts, v_open.members) AS o (receipts, members)
            ON CONFLICT DO NOTHING
            RETURNING coalesce(receipts, int8multirange(int8range(receipt, receipt + 1))) AS receipts)
        SELECT array_agg(b.batch_id) AS batches, array_agg(w.receipts) AS closed, array_agg(b.lane_id) AS lanes,
               array_agg(b.ready_slot) AS ready_slots, array_agg(b.attempt_seq) AS seqs,
               array_agg(w.receipts = /*schema*/awa.batch_receipts(b.batch_id, b.members)) AS are_whole,
               array_agg(b.claimed_at) AS claimed_ats, count(*) AS rows
        INTO v_done
        FROM written AS w
        CROSS JOIN LATERAL (
            SELECT l.batch_id, l.lane_id, l.ready_slot, l.attempt_seq, l.members, l.claimed_at
            FROM /*schema*/awa.lease_claim_batches_0/*slot*/ AS l WHERE l.batch_id = lower(w.receipts) >> 10 LIMIT 1) AS b;
        batches := batches || v_done.batches;
        closed := closed || v_done.closed;
        lanes := lanes || v_done.lanes;
        ready_slots := ready_slots || v_done.ready_slots;
        seqs := seqs || v_done.seqs;
        are_whole := are_whole || v_done.are_whole;
        claimed_ats := claimed_ats || v_done.claimed_ats;
        -- A row was refused: somebody closed one of its receipts meanwhile. Read again what is left, and repeat.
        EXIT WHEN v_done.rows = v_open.rows;
        IF v_turn = 8 THEN
            RAISE EXCEPTION 'others closed receipts of the same batches 8 times meanwhile' USING ERRCODE = '55P03',
                HINT = 'close fewer attempts at once';
        END IF;
    END LOOP;
END
$awa$;
