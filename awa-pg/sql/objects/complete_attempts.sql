-- Purpose: ends attempts well with nothing to keep: the hot path of a worker's completions.
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
END
$awa$;
