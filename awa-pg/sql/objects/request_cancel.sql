-- Purpose: cancels jobs in a transaction of an application's, without holding a lane or an attempt to its end. A job that waits
--   for its time is cancelled when the transaction commits. Of one that is ready or runs it is asked for: a tombstone keeps the
--   row that waits from being handed out by claims that begin after the commit, and whoever ends an attempt, or the next tick,
--   carries the request out.
-- Parameters: ids; the reason; the present for tests.
-- Returns: a row per id in input order: position from 1, and 'deferred' (cancelled when the transaction commits),
--   'asked:<state>', 'contended' (somebody else holds its row: ask again), '!<state>' (it had ended), NULL (no such job).
-- Locks: the row of a deferred job, only tried; as bury_waiting, waiting for an open transaction that has cancelled or replaced the
--   same job; ROW EXCLUSIVE on cancel_requests.
-- Caller: cancel in a driver's transaction, other languages.
CREATE OR REPLACE FUNCTION /*schema*/awa.request_cancel(p_jobs bigint[], p_reason text, p_now timestamptz DEFAULT NULL)
RETURNS TABLE (position_of_id integer, answer text) LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $awa$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
BEGIN
    PERFORM /*schema*/awa.assert_same_cluster();
    FOR v_index IN 1..cardinality(p_jobs) LOOP
        position_of_id := v_index;
        answer := /*schema*/awa.cancel_deferred(p_jobs[v_index], p_reason, v_now);
        IF answer IS NULL THEN
            answer := /*schema*/awa.glimpse_state(p_jobs[v_index]);
            IF answer IN ('ready', 'running', 'waiting') THEN
                IF answer = 'ready' THEN
                    PERFORM /*schema*/awa.bury_waiting(p_jobs[v_index], p_reason, v_now);
                END IF;
                INSERT INTO /*schema*/awa.cancel_requests (job_id, requested_at, reason)
                VALUES (p_jobs[v_index], v_now, p_reason);
                answer := 'asked:' || answer;
            ELSIF answer = 'deferred' THEN
                answer := 'contended';
            ELSE
                answer := '!' || answer;
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$awa$;
