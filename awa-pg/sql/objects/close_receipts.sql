-- Purpose: closes members of claims of one claim slot, each in the shape of its claim; see close_receipts_0 and
--   close_row_claims_0. A child without row-local claims is not looked into.
-- Parameters: the slot; the rest as close_receipts_0.
-- Returns: as close_receipts_0.
-- Locks: as close_receipts_0; where there are row-local claims, also as close_row_claims_0.
-- Caller: complete_attempts, end_attempts, materialize_attempts.
CREATE OR REPLACE FUNCTION /*schema*/awa.close_receipts(
    p_claim_slot smallint, p_outcome smallint, p_batches bigint[], p_nonces bigint[], p_receipts int8multirange[],
    OUT batches bigint[], OUT closed int8multirange[], OUT lanes bigint[], OUT ready_slots smallint[],
    OUT seqs bigint[], OUT are_whole boolean[], OUT claimed_ats timestamptz[])
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_rows record;
BEGIN
    CASE p_claim_slot
    -- each claim slot:
    WHEN 0/*slot*/ THEN
        SELECT c.batches, c.closed, c.lanes, c.ready_slots, c.seqs, c.are_whole, c.claimed_ats
        INTO batches, closed, lanes, ready_slots, seqs, are_whole, claimed_ats
        FROM /*schema*/awa.close_receipts_0/*slot*/(p_outcome, p_batches, p_nonces, p_receipts) AS c;
        IF pg_relation_size('/*schema*/awa.lease_claims_0/*slot*/') > 0 THEN
            SELECT c.batches, c.closed, c.lanes, c.ready_slots, c.seqs, c.are_whole, c.claimed_ats INTO v_rows
            FROM /*schema*/awa.close_row_claims_0/*slot*/(p_outcome, p_batches, p_nonces, p_receipts) AS c;
            batches := batches || v_rows.batches;
            closed := closed || v_rows.closed;
            lanes := lanes || v_rows.lanes;
            ready_slots := ready_slots || v_rows.ready_slots;
            seqs := seqs || v_rows.seqs;
            are_whole := are_whole || v_rows.are_whole;
            claimed_ats := claimed_ats || v_rows.claimed_ats;
        END IF;
    -- end each
    -- A slot that never was: such a claim was never issued, and closes nothing.
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', p_claim_slot, false);
    END CASE;
END
$awa$;
