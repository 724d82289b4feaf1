-- Purpose: ends those attempts of a call that are not in the claim ring but go on as leases. "Not found" there means:
--   look here, and only then is the attempt stale.
-- Parameters: positions of the attempts in question; then the arrays of the call, as end_attempts; the present.
-- Returns: the receipts ended by this call.
-- Locks: as take_leases; ROW EXCLUSIVE on the tables written.
-- Caller: end_attempts, complete_attempts.
CREATE OR REPLACE FUNCTION /*schema*/awa.end_leases(
    p_tags bigint[], p_claim_slots smallint[], p_nonces bigint[], p_receipts bigint[], p_outcomes smallint[],
    p_routes text[], p_delays_us bigint[], p_texts text[], p_results json[], p_now timestamptz)
RETURNS SETOF bigint LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_ended /*schema*/awa.ended_attempt[];
    v_done  smallint;
BEGIN
    v_ended := /*schema*/awa.take_leases(p_tags, p_claim_slots, p_nonces, p_receipts);
    IF v_ended IS NOT NULL THEN
        PERFORM FROM unnest(v_ended) AS e JOIN unnest(p_routes) WITH ORDINALITY AS r (route, o) ON r.o = e.tag
        WHERE r.route IN ('completed', 'failed', 'cancelled');
        IF FOUND THEN
            v_done := /*schema*/awa.enter_done_slot();
        END IF;
        PERFORM /*schema*/awa.place_ended(v_ended, p_outcomes, p_routes, p_delays_us, p_texts, p_results, v_done, p_now);
        RETURN QUERY SELECT e.receipt_id FROM unnest(v_ended) AS e;
    END IF;
    -- TRUNCATE is not subject to snapshots, and neither is what this one cannot see yet: where it proves nothing, only a new
    -- transaction can tell a closed attempt from one that lives on elsewhere.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM FROM unnest(p_claim_slots, p_nonces, p_receipts) WITH ORDINALITY AS w (claim_slot, nonce, receipt, o)
        WHERE w.o = ANY (p_tags) AND NOT EXISTS (SELECT FROM unnest(v_ended) AS e WHERE e.tag = w.o)
          AND NOT /*schema*/awa.is_over(w.claim_slot, w.nonce, w.receipt);
        IF FOUND THEN
            RAISE EXCEPTION 'the attempt is not open as far as this transaction can see' USING ERRCODE = '40001',
                HINT = 'run the transaction again';
        END IF;
    END IF;
END
$awa$;
