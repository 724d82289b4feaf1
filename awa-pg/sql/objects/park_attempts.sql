-- Purpose: parks running attempts: no worker holds them any more, and they wait for a callback. One whose callback came
--   already goes on at once. The nonce is turned over, so that what the worker holds fits the lease no more.
-- Parameters: parallel arrays, one element per attempt, each receipt once: claim slot, nonce, receipt, microseconds until
--   its time runs out; the present for tests.
-- Returns: the receipts parked or gone on by this call.
-- Locks: as hold_attempts; where some job is unique, as release_unique_keys; as end_attempts. Waits at most 100 ms.
-- Caller: Consumer::close, other languages.
CREATE OR REPLACE FUNCTION /*schema*/awa.park_attempts(
    p_claim_slots smallint[], p_nonces bigint[], p_receipts bigint[], p_timeouts_us bigint[],
    p_now timestamptz DEFAULT NULL)
RETURNS SETOF bigint LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET lock_timeout = '100ms' AS $awa$
DECLARE
    v_now    timestamptz := coalesce(p_now, clock_timestamp());
    v_held   bigint[];
    v_called record;
    v_parked bigint[];
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    v_held := /*schema*/awa.hold_attempts(p_claim_slots, p_nonces, p_receipts);
    -- The callback holds the same rows, so it came before or finds the attempt parked.
    SELECT array_agg(l.claim_slot) AS claim_slots, array_agg(l.nonce) AS nonces, array_agg(l.receipt_id) AS receipts
    INTO v_called
    FROM /*schema*/awa.leases AS l
    JOIN /*schema*/awa.attempt_state AS s ON s.job_id = l.job_id AND s.callback_lease = l.run_lease
    WHERE l.receipt_id = ANY (v_held) AND s.called_at IS NOT NULL;
    IF v_called.receipts IS NOT NULL THEN
        PERFORM /*schema*/awa.go_on(v_called.claim_slots, v_called.nonces, v_called.receipts, v_now);
    END IF;
    WITH parked AS (
        UPDATE /*schema*/awa.leases AS l
        SET nonce = ~ l.nonce, waiting_until = v_now + w.timeout_us * interval '1 microsecond'
        FROM unnest(p_receipts, p_timeouts_us) AS w (receipt, timeout_us)
        WHERE l.receipt_id = w.receipt AND w.receipt = ANY (v_held)
        RETURNING l.job_id)
    SELECT array_agg(p.job_id) INTO v_parked FROM parked AS p;
    IF v_parked IS NOT NULL THEN
        PERFORM /*schema*/awa.release_unique_keys(v_parked, 8::smallint);
    END IF;
    RETURN QUERY SELECT h FROM unnest(v_held) AS h;
END
$awa$;
