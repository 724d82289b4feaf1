-- Purpose: takes callbacks from outside. The payload is stored with the job; a parked attempt goes on, and one that still
--   runs goes on when it parks.
-- Parameters: parallel arrays, one element per callback: token, payload; the present for tests.
-- Returns: a row per callback: its position from 1, and 'resumed', 'kept' (the attempt still runs), 'unknown', 'used' (a
--   callback came before), 'expired' (the time of the attempt has run out), 'over' (the attempt has ended).
-- Locks: the rows of leases and then of attempt_state; as end_attempts. Waits at most 100 ms.
-- Caller: Attempts::resume, other languages.
CREATE OR REPLACE FUNCTION /*schema*/awa.resume_attempts(p_tokens uuid[], p_payloads json[], p_now timestamptz DEFAULT NULL)
RETURNS TABLE (position_of_token integer, answer text) LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET lock_timeout = '100ms' AS $awa$
DECLARE
    v_now   timestamptz := coalesce(p_now, clock_timestamp());
    v_item  record;
    v_known record;
    v_lease record;
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    FOR v_item IN
        SELECT w.token, w.payload, w.o::integer AS o, s.job_id
        FROM unnest(p_tokens, p_payloads) WITH ORDINALITY AS w (token, payload, o)
        LEFT JOIN /*schema*/awa.attempt_state AS s ON s.token = w.token ORDER BY s.job_id, w.o
    LOOP
        position_of_token := v_item.o;
        v_lease := /*schema*/awa.hold_lease_of(v_item.job_id);
        -- Again under the lock.
        SELECT s.job_id, s.callback_lease, s.called_at INTO v_known
        FROM /*schema*/awa.attempt_state AS s WHERE s.token = v_item.token;
        answer := CASE
            WHEN v_known.job_id IS NULL THEN 'unknown'
            WHEN v_known.called_at IS NOT NULL THEN 'used'
            WHEN v_lease.run_lease IS DISTINCT FROM v_known.callback_lease THEN 'over'
            WHEN v_lease.waiting_until IS NULL THEN 'kept'
            WHEN v_lease.waiting_until <= v_now THEN 'expired'
            ELSE 'resumed' END;
        IF answer IN ('kept', 'resumed') THEN
            UPDATE /*schema*/awa.attempt_state AS s SET called_at = v_now, payload = v_item.payload
            WHERE s.token = v_item.token;
        END IF;
        IF answer = 'resumed' THEN
            PERFORM /*schema*/awa.go_on(
                ARRAY[v_lease.claim_slot], ARRAY[v_lease.nonce], ARRAY[v_lease.receipt_id], v_now);
        END IF;
        RETURN NEXT;
    END LOOP;
END
$awa$;
