-- Purpose: ends attempts in any other way than a plain completion, also those that go on as leases, and moves each job to where it goes, in one
--   transaction. Rescue, cancellation and handlers all come through here.
-- Parameters: parallel arrays, one element per attempt: claim slot, nonce, receipt, outcome (a number of
--   attempt_outcomes), where the job goes ('carried': ready again, before all others of its lane; 'deferred', 'dead' (failed for good: see failed_route), 'completed', 'failed', 'cancelled'), delay in
--   microseconds for 'deferred', error or reason, result; the present for tests.
-- Returns: the receipts closed by this call.
-- Locks: ROW EXCLUSIVE on children of lease_claim_closure_batches (ascending) and one of done_entries; waits at most
--   100 ms for somebody who is closing the same receipts.
-- Caller: Consumer::close, rescue, cancel_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.end_attempts(
    p_claim_slots smallint[], p_nonces bigint[], p_receipts bigint[], p_outcomes smallint[], p_routes text[],
    p_delays_us bigint[], p_texts text[], p_results json[], p_now timestamptz DEFAULT NULL)
RETURNS SETOF bigint LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET lock_timeout = '100ms' AS $awa$
DECLARE
    v_now       timestamptz := coalesce(p_now, clock_timestamp());
    v_want      record;
    v_done      record;
    v_group     record;
    v_done_slot smallint;
    v_closed    bigint[] := '{}';
    v_missing   bigint[];
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    FOR v_want IN
        SELECT b.claim_slot, b.outcome, array_agg(b.batch ORDER BY b.batch) AS batches,
               array_agg(b.nonce ORDER BY b.batch) AS nonces, array_agg(b.receipts ORDER BY b.batch) AS receipts
        FROM (SELECT w.claim_slot, w.outcome, w.receipt >> 10 AS batch, w.nonce,
                     range_agg(int8range(w.receipt, w.receipt + 1)) AS receipts
              FROM unnest(p_claim_slots, p_nonces, p_receipts, p_outcomes) AS w (claim_slot, nonce, receipt, outcome)
              GROUP BY w.claim_slot, w.outcome, w.receipt >> 10, w.nonce) AS b
        GROUP BY b.claim_slot, b.outcome ORDER BY b.claim_slot, b.outcome
    LOOP
        SELECT c.batches, c.closed, c.lanes, c.ready_slots, c.seqs, c.claimed_ats INTO v_done
        FROM /*schema*/awa.close_receipts(
            v_want.claim_slot, v_want.outcome, v_want.batches, v_want.nonces, v_want.receipts) AS c;
        CONTINUE WHEN v_done.batches IS NULL;
        FOR v_group IN
            SELECT d.ready_slot, array_agg(w.o) AS tags, array_agg(d.lane) AS lanes, array_agg(d.seq) AS seqs,
                   array_agg((w.receipt & 1023)::integer) AS indexes, array_agg(w.receipt) AS receipts,
                   array_agg(d.claimed_at) AS claimed_ats, bool_or(w.route IN ('completed', 'failed', 'cancelled')) AS is_done
            FROM unnest(v_done.ready_slots, v_done.lanes, v_done.seqs, v_done.closed, v_done.claimed_ats, v_done.batches)
                AS d (ready_slot, lane, seq, receipts, claimed_at, batch)
            JOIN (SELECT DISTINCT ON (u.receipt) u.receipt, u.route, u.o
                  FROM unnest(p_receipts, p_outcomes, p_routes) WITH ORDINALITY AS u (receipt, outcome, route, o)
                  WHERE u.outcome = v_want.outcome ORDER BY u.receipt, u.o) AS w
                ON w.receipt >> 10 = d.batch AND d.receipts @> w.receipt
            GROUP BY d.ready_slot ORDER BY d.ready_slot
        LOOP
            IF v_group.is_done AND v_done_slot IS NULL THEN
                v_done_slot := /*schema*/awa.enter_done_slot();
            END IF;
            PERFORM /*schema*/awa.route_ended(v_group.ready_slot, v_group.tags, v_group.lanes, v_group.seqs,
                v_group.indexes, v_group.claimed_ats, p_outcomes, p_routes, p_delays_us, p_texts, p_results,
                v_done_slot, v_now);
            RETURN QUERY SELECT r FROM unnest(v_group.receipts) AS r;
            v_closed := v_closed || v_group.receipts;
        END LOOP;
    END LOOP;
    SELECT array_agg(w.o) INTO v_missing FROM unnest(p_receipts) WITH ORDINALITY AS w (receipt, o)
    WHERE NOT w.receipt = ANY (v_closed);
    IF v_missing IS NOT NULL THEN
        RETURN QUERY SELECT r FROM /*schema*/awa.end_leases(v_missing, p_claim_slots, p_nonces, p_receipts, p_outcomes,
            p_routes, p_delays_us, p_texts, p_results, v_now) AS r;
    END IF;
END
$awa$;
