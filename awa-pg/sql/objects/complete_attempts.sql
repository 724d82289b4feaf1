-- Purpose: ends attempts well with nothing to keep, also those that go on as leases: the hot path of a worker's completions.
-- Parameters: parallel arrays, one element per batch: claim slot, batch, nonce, receipts as the text of an
--   int8multirange; the present for tests.
-- Returns: a row per batch of which something was closed: the batch, and the receipts closed by this call.
-- Locks: ROW EXCLUSIVE on children of lease_claim_closure_batches and receipt_completion_batches, which none of
--   their holders excludes; waits at most 100 ms for somebody who is closing the same receipts.
-- Caller: Consumer::close, other languages.
CREATE OR REPLACE FUNCTION /*schema*/awa.complete_attempts(
    p_claim_slots smallint[], p_batches bigint[], p_nonces bigint[], p_receipts text[],
    p_now timestamptz DEFAULT NULL)
RETURNS TABLE (batch_id bigint, closed text)
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET lock_timeout = '100ms' AS $awa$
DECLARE
    v_now     timestamptz := coalesce(p_now, clock_timestamp());
    v_one     record;
    v_batches bigint[];
    v_closed  int8multirange[];
    v_lanes   bigint[];
    v_ready   smallint[];
    v_seqs    bigint[];
    v_whole   boolean[];
    v_left    integer;
    v_from    integer;
    v_want    record;
    v_done    record;
    v_group   record;
    v_all     int8multirange := '{}';
    v_rest    record;
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    -- A few batches are closed one by one, in their order: a statement for all of them costs more to start than a look at each.
    IF cardinality(p_batches) BETWEEN 1 AND 3 AND cardinality(p_claim_slots) = cardinality(p_batches)
       AND cardinality(p_nonces) = cardinality(p_batches) AND cardinality(p_receipts) = cardinality(p_batches)
       AND coalesce((p_claim_slots[1], p_batches[1]) < (p_claim_slots[2], p_batches[2]), true)
       AND coalesce((p_claim_slots[2], p_batches[2]) < (p_claim_slots[3], p_batches[3]), true) THEN
        FOR v_at IN 1..cardinality(p_batches) LOOP
            CASE p_claim_slots[v_at]
            -- each claim slot:
            WHEN 0/*slot*/ THEN
                v_one := /*schema*/awa.close_one_0/*slot*/(
                    1::smallint, p_batches[v_at], p_nonces[v_at], p_receipts[v_at]::int8multirange);
            -- end each
            ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', p_claim_slots[v_at], false);
                CONTINUE;
            END CASE;
            CONTINUE WHEN v_one.closed IS NULL;
            v_batches := v_batches || p_batches[v_at];
            v_closed := v_closed || v_one.closed;
            v_lanes := v_lanes || v_one.lane;
            v_ready := v_ready || v_one.ready_slot;
            v_seqs := v_seqs || v_one.seq;
            v_whole := v_whole || v_one.is_whole;
        END LOOP;
        v_left := cardinality(v_batches);
        WHILE v_left > 0 LOOP
            v_from := CASE WHEN v_ready[1] = ALL (v_ready) THEN 1 ELSE v_left END;
            CASE v_ready[v_left]
            -- each queue slot:
            WHEN 0/*slot*/ THEN
                PERFORM /*schema*/awa.record_completions_in_0/*slot*/(
                    v_lanes[v_from:v_left], v_seqs[v_from:v_left], v_closed[v_from:v_left], v_whole[v_from:v_left], v_now);
            -- end each
            ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_ready[v_left], true);
            END CASE;
            v_left := v_from - 1;
        END LOOP;
        FOR v_at IN 1..coalesce(cardinality(v_batches), 0) LOOP
            v_all := v_all + v_closed[v_at];
            batch_id := v_batches[v_at];
            closed := v_closed[v_at]::text;
            RETURN NEXT;
        END LOOP;
        IF p_receipts[1]::int8multirange <@ v_all AND coalesce(p_receipts[2]::int8multirange <@ v_all, true)
           AND coalesce(p_receipts[3]::int8multirange <@ v_all, true) THEN
            RETURN;
        END IF;
        -- What is not closed by now may be claimed row by row, or go on as a lease.
    END IF;
    FOR v_want IN
        SELECT w.claim_slot, array_agg(w.batch ORDER BY w.batch) AS batches, array_agg(w.nonce ORDER BY w.batch) AS nonces,
               array_agg(w.receipts::int8multirange ORDER BY w.batch) AS receipts
        FROM unnest(p_claim_slots, p_batches, p_nonces, p_receipts) AS w (claim_slot, batch, nonce, receipts)
        GROUP BY w.claim_slot ORDER BY w.claim_slot
    LOOP
        SELECT c.batches, c.closed, c.lanes, c.ready_slots, c.seqs, c.are_whole INTO v_done
        FROM /*schema*/awa.close_receipts(
            v_want.claim_slot, 1::smallint, v_want.batches, v_want.nonces, v_want.receipts) AS c;
        CONTINUE WHEN v_done.batches IS NULL;
        v_all := v_all + (SELECT range_agg(c) FROM unnest(v_done.closed) AS c);
        FOR v_group IN
            SELECT d.ready_slot, array_agg(d.lane) AS lanes, array_agg(d.seq) AS seqs, array_agg(d.receipts) AS receipts,
                   array_agg(d.is_whole) AS are_whole
            FROM unnest(v_done.ready_slots, v_done.lanes, v_done.seqs, v_done.closed, v_done.are_whole)
                AS d (ready_slot, lane, seq, receipts, is_whole)
            GROUP BY d.ready_slot ORDER BY d.ready_slot
        LOOP
            CASE v_group.ready_slot
            -- each queue slot:
            WHEN 0/*slot*/ THEN
                PERFORM /*schema*/awa.record_completions_in_0/*slot*/(
                    v_group.lanes, v_group.seqs, v_group.receipts, v_group.are_whole, v_now);
            -- end each
            ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_group.ready_slot, true);
            END CASE;
        END LOOP;
        FOR v_group IN
            SELECT d.batch, d.receipts FROM unnest(v_done.batches, v_done.closed) AS d (batch, receipts)
        LOOP
            batch_id := v_group.batch;
            closed := v_group.receipts::text;
            RETURN NEXT;
        END LOOP;
    END LOOP;
    PERFORM FROM unnest(p_receipts) AS w (receipts) WHERE NOT w.receipts::int8multirange <@ v_all;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT array_agg(w.claim_slot) AS claim_slots, array_agg(w.nonce) AS nonces, array_agg(m.receipt) AS receipts,
           array_agg(1::smallint) AS outcomes, array_agg('completed'::text) AS routes
    INTO v_rest
    FROM unnest(p_claim_slots, p_nonces, p_receipts) AS w (claim_slot, nonce, receipts)
    CROSS JOIN LATERAL unnest(w.receipts::int8multirange - v_all) AS r (run)
    CROSS JOIN LATERAL generate_series(lower(r.run), upper(r.run) - 1) AS m (receipt);
    FOR v_group IN
        SELECT e.receipt
        FROM /*schema*/awa.end_leases(
            ARRAY(SELECT o FROM generate_series(1::bigint, cardinality(v_rest.receipts)) AS o), v_rest.claim_slots,
            v_rest.nonces, v_rest.receipts, v_rest.outcomes, v_rest.routes, NULL, NULL, NULL, v_now) AS e (receipt)
    LOOP
        batch_id := v_group.receipt >> 10;
        closed := int8multirange(int8range(v_group.receipt, v_group.receipt + 1))::text;
        RETURN NEXT;
    END LOOP;
END
$awa$;
