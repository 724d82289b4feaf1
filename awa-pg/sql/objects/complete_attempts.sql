-- Purpose: ends attempts well with nothing to keep, also those that go on as leases: the hot path of a worker's completions.
-- Parameters: parallel arrays, one element per batch: claim slot, batch, nonce, receipts as the text of an
--   int8multirange; the present for tests.
-- Returns: a row per batch of which something was closed: the batch, and the receipts closed by this call.
-- Locks: ROW EXCLUSIVE on children of lease_claim_closure_batches and receipt_completion_batches, in ascending order of
--   slots; waits at most 100 ms for somebody who is closing the same receipts.
-- Caller: Consumer::close, other languages.
CREATE OR REPLACE FUNCTION /*schema*/awa.complete_attempts(
    p_claim_slots smallint[], p_batches bigint[], p_nonces bigint[], p_receipts text[],
    p_now timestamptz DEFAULT NULL)
RETURNS TABLE (batch_id bigint, closed text)
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET lock_timeout = '100ms' AS $awa$
DECLARE
    v_now   timestamptz := coalesce(p_now, clock_timestamp());
    v_want  record;
    v_done  record;
    v_group record;
    v_all   int8multirange := '{}';
    v_rest  record;
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
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
