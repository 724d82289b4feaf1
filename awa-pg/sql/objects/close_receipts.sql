-- Purpose: closes members of compact claims of one claim slot; see close_receipts_0.
-- Parameters: the slot; the rest as close_receipts_0.
-- Returns: as close_receipts_0.
-- Locks: as close_receipts_0.
-- Caller: complete_attempts, end_attempts.
CREATE OR REPLACE FUNCTION /*schema*/awa.close_receipts(
    p_claim_slot smallint, p_outcome smallint, p_batches bigint[], p_nonces bigint[], p_receipts int8multirange[],
    OUT batches bigint[], OUT closed int8multirange[], OUT lanes bigint[], OUT ready_slots smallint[],
    OUT seqs bigint[], OUT are_whole boolean[], OUT claimed_ats timestamptz[])
LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    CASE p_claim_slot
    -- each claim slot:
    WHEN 0/*slot*/ THEN
        SELECT c.batches, c.closed, c.lanes, c.ready_slots, c.seqs, c.are_whole, c.claimed_ats
        INTO batches, closed, lanes, ready_slots, seqs, are_whole, claimed_ats
        FROM /*schema*/awa.close_receipts_0/*slot*/(p_outcome, p_batches, p_nonces, p_receipts) AS c;
    -- end each
    -- A slot that never was: such a claim was never issued, and closes nothing.
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', p_claim_slot, false);
    END CASE;
END
$awa$;
