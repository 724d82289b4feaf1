-- Purpose: closes row-local claims of one claim slot: what is open among the wanted is closed, once. The primary key of the
--   closures is the last word: whoever closes the same claim meanwhile is waited for, and then one of the two has written
--   nothing. lease_claims.closed_at is left alone for that reason: a fence that is set with each closure would say no more
--   than the key says already, and each closure would leave a dead row in a table that is only appended to (I6).
-- Parameters: as close_receipts_0.
-- Returns: as close_receipts_0, one element per batch of which something was closed; are_whole is false, the receipts tell.
-- Locks: ROW EXCLUSIVE on the child of lease_claim_closures; waits for a transaction that is closing the same claim, no
--   longer than lock_timeout. Under REPEATABLE READ such a transaction that has committed is a serialization failure.
-- Caller: close_receipts.
-- per slot of: claim ring
CREATE OR REPLACE FUNCTION /*schema*/awa.close_row_claims_0/*slot*/(
    p_outcome smallint, p_batches bigint[], p_nonces bigint[], p_receipts int8multirange[],
    OUT batches bigint[], OUT closed int8multirange[], OUT lanes bigint[], OUT ready_slots smallint[],
    OUT seqs bigint[], OUT are_whole boolean[], OUT claimed_ats timestamptz[])
LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    WITH written AS (
        INSERT INTO /*schema*/awa.lease_claim_closures_0/*slot*/ (
            receipt_id, job_id, run_lease, closed_at, claim_slot, ready_slot, outcome)
        SELECT l.receipt_id, l.job_id, l.run_lease, clock_timestamp(), l.claim_slot, l.ready_slot, p_outcome
        FROM unnest(p_batches, p_nonces, p_receipts) AS w (batch, nonce, receipts)
        CROSS JOIN LATERAL (
            SELECT c.receipt_id, c.job_id, c.run_lease, c.claim_slot, c.ready_slot
            FROM /*schema*/awa.lease_claims_0/*slot*/ AS c
            WHERE c.receipt_id > w.batch << 10 AND c.receipt_id < (w.batch + 1) << 10 AND c.nonce = w.nonce
              AND w.receipts @> c.receipt_id
            OFFSET 0) AS l
        -- In one order, so that two closers cannot wait for each other.
        ORDER BY l.receipt_id
        ON CONFLICT DO NOTHING
        RETURNING receipt_id
    ), ended AS (
        SELECT l.receipt_id >> 10 AS batch, range_agg(int8range(l.receipt_id, l.receipt_id + 1)) AS receipts,
               min(l.lane_id) AS lane, min(l.ready_slot) AS ready_slot, min(l.attempt_seq) AS seq,
               min(l.claimed_at) AS claimed_at
        FROM written AS w
        CROSS JOIN LATERAL (
            SELECT c.receipt_id, c.lane_id, c.ready_slot, c.attempt_seq, c.claimed_at
            FROM /*schema*/awa.lease_claims_0/*slot*/ AS c WHERE c.receipt_id = w.receipt_id LIMIT 1) AS l
        GROUP BY l.receipt_id >> 10
    )
    SELECT array_agg(e.batch), array_agg(e.receipts), array_agg(e.lane), array_agg(e.ready_slot), array_agg(e.seq),
           array_agg(false), array_agg(e.claimed_at)
    INTO batches, closed, lanes, ready_slots, seqs, are_whole, claimed_ats FROM ended AS e;
END
$awa$;
