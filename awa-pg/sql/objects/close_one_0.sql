-- Purpose: closes members of one compact claim; close_receipts_0 for a call that ends attempts of one batch only, which needs
--   no arrays and so a third of the time. The constraints of the child are the last word here as well.
-- Parameters: outcome; batch, nonce, wanted receipts.
-- Returns: the receipts closed, NULL when none was; lane, slot and sequence of the attempt batch; whether the whole batch was
--   closed by it. A batch that is not there, or has another nonce, closes nothing.
-- Locks: as close_receipts_0.
-- Caller: complete_attempts.
-- per slot of: claim ring
-- depends on: batch_receipts
CREATE OR REPLACE FUNCTION /*schema*/awa.close_one_0/*slot*/(
    p_outcome smallint, p_batch bigint, p_nonce bigint, p_receipts int8multirange,
    OUT closed int8multirange, OUT lane bigint, OUT ready_slot smallint, OUT seq bigint, OUT is_whole boolean)
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_members smallint;
    v_batch   int8multirange;
    v_rest    int8multirange;
BEGIN
    SELECT l.members, l.lane_id, l.ready_slot, l.attempt_seq INTO v_members, lane, ready_slot, seq
    FROM /*schema*/awa.lease_claim_batches_0/*slot*/ AS l
    WHERE l.batch_id = p_batch AND l.nonce = p_nonce LIMIT 1;
    IF v_members IS NULL THEN
        RETURN;
    END IF;
    v_batch := /*schema*/awa.batch_receipts(p_batch, v_members);
    FOR v_turn IN 1..8 LOOP
        v_rest := p_receipts * v_batch;
        IF v_members > 1 THEN
            v_rest := v_rest - coalesce((SELECT range_agg(c.receipts)
                                         FROM /*schema*/awa.lease_claim_closure_batches_0/*slot*/ AS c
                                         WHERE c.receipts && p_receipts), '{}');
        END IF;
        -- Nothing, or nothing that is known.
        IF isempty(v_rest) IS NOT FALSE THEN
            RETURN;
        END IF;
        INSERT INTO /*schema*/awa.lease_claim_closure_batches_0/*slot*/ (claim_slot, outcome, receipt, receipts)
        VALUES (0/*slot*/, p_outcome, CASE WHEN v_members = 1 THEN lower(v_rest) END, CASE WHEN v_members > 1 THEN v_rest END)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            closed := v_rest;
            is_whole := v_rest = v_batch;
            RETURN;
        END IF;
        -- The row was refused: somebody closed one of its receipts meanwhile, the only one or one of several. Then read again
        -- what is left, and repeat.
        IF v_members = 1 THEN
            RETURN;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'others closed receipts of the same batches 8 times meanwhile' USING ERRCODE = '55P03',
        HINT = 'close fewer attempts at once';
END
$awa$;
