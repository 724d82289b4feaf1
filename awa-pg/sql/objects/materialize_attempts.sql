-- Purpose: turns open attempts of the claim ring into leases, so that they keep no slot. The claim is closed, the receipt
--   stays good.
-- Parameters: parallel arrays, one element per attempt: claim slot, nonce, receipt.
-- Returns: how many were open and are leases now.
-- Locks: ROW EXCLUSIVE on children of lease_claim_closure_batches or lease_claim_closures (ascending) and one of
--   leases; waits at most 100 ms for
--   somebody who is closing the same receipts.
-- Caller: Maintainer::unpin.
CREATE OR REPLACE FUNCTION /*schema*/awa.materialize_attempts(
    p_claim_slots smallint[], p_nonces bigint[], p_receipts bigint[])
RETURNS bigint LANGUAGE plpgsql VOLATILE SET jit = off SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET lock_timeout = '100ms' AS $awa$
DECLARE
    v_want  record;
    v_done  record;
    v_group record;
    v_slot  smallint;
    v_moved bigint;
    v_total bigint := 0;
BEGIN
    FOR v_want IN
        SELECT b.claim_slot, array_agg(b.batch ORDER BY b.batch) AS batches, array_agg(b.nonce ORDER BY b.batch) AS nonces,
               array_agg(b.receipts ORDER BY b.batch) AS receipts
        FROM (SELECT w.claim_slot, w.receipt >> 10 AS batch, w.nonce,
                     range_agg(int8range(w.receipt, w.receipt + 1)) AS receipts
              FROM unnest(p_claim_slots, p_nonces, p_receipts) AS w (claim_slot, nonce, receipt)
              GROUP BY w.claim_slot, w.receipt >> 10, w.nonce) AS b
        GROUP BY b.claim_slot ORDER BY b.claim_slot
    LOOP
        SELECT c.batches, c.closed, c.lanes, c.ready_slots, c.seqs, c.claimed_ats INTO v_done
        FROM /*schema*/awa.close_receipts(
            v_want.claim_slot, 9::smallint, v_want.batches, v_want.nonces, v_want.receipts) AS c;
        CONTINUE WHEN v_done.batches IS NULL;
        v_slot := coalesce(v_slot, /*schema*/awa.enter_lease_slot());
        FOR v_group IN
            SELECT d.ready_slot, array_agg(m.receipt) AS receipts, array_agg(d.lane) AS lanes, array_agg(d.seq) AS seqs,
                   array_agg((m.receipt & 1023)::integer) AS indexes
            FROM unnest(v_done.ready_slots, v_done.lanes, v_done.seqs, v_done.closed) AS d (ready_slot, lane, seq, closed)
            CROSS JOIN LATERAL unnest(d.closed) AS r (run)
            CROSS JOIN LATERAL generate_series(lower(r.run), upper(r.run) - 1) AS m (receipt)
            GROUP BY d.ready_slot ORDER BY d.ready_slot
        LOOP
            INSERT INTO /*schema*/awa.leases (
                receipt_id, nonce, job_id, run_lease, lane_id, xid, instance_id, created_at, claimed_at, deadline_at,
                claim_slot, lease_slot, priority, shard, attempt, max_attempts, queue, kind, args, metadata, last_error)
            SELECT b.tag, c.nonce, b.job_id, b.run_lease + 1, b.lane_id, b.xid, c.instance_id, b.created_at, c.claimed_at,
                   c.deadline_at, c.claim_slot, v_slot, l.priority, l.shard, b.attempt + 1, b.max_attempts, l.queue, b.kind,
                   b.args, b.metadata, b.last_error
            FROM /*schema*/awa.attempt_bodies(
                v_group.ready_slot, v_group.receipts, v_group.lanes, v_group.seqs, v_group.indexes) AS b
            CROSS JOIN LATERAL (
                SELECT n.claim_slot, n.nonce, n.instance_id, n.claimed_at, n.deadline_at
                FROM /*schema*/awa.lease_claim_batches AS n
                WHERE n.claim_slot = v_want.claim_slot AND n.batch_id = b.tag >> 10
                UNION ALL
                SELECT n.claim_slot, n.nonce, n.instance_id, n.claimed_at, n.deadline_at
                FROM /*schema*/awa.lease_claims AS n
                WHERE n.claim_slot = v_want.claim_slot AND n.receipt_id = b.tag) AS c
            JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = b.lane_id;
            GET DIAGNOSTICS v_moved = ROW_COUNT;
            IF v_moved <> cardinality(v_group.receipts) THEN
                RAISE EXCEPTION 'of % attempts on queue slot % only % have their job', cardinality(v_group.receipts),
                    v_group.ready_slot, v_moved
                    USING ERRCODE = 'AW002', CONSTRAINT = 'AW002',
                        HINT = 'a row of ready_entries or queue_lanes was changed by hand';
            END IF;
            v_total := v_total + v_moved;
        END LOOP;
    END LOOP;
    RETURN v_total;
END
$awa$;
