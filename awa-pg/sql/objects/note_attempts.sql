-- Purpose: writes down what running attempts note: that they live, how far they have come, a token for a callback.
-- Parameters: parallel arrays, one element per attempt, each receipt once: claim slot, nonce, receipt, progress or NULL,
--   token or NULL; the present for tests.
-- Returns: a row per attempt that is running: its receipt, and its token, which is an older one if it had one.
-- Locks: as hold_attempts; then the rows of attempt_state. Waits at most 100 ms.
-- Caller: Attempts::note, other languages.
CREATE OR REPLACE FUNCTION /*schema*/awa.note_attempts(
    p_claim_slots smallint[], p_nonces bigint[], p_receipts bigint[], p_progress json[], p_tokens uuid[],
    p_now timestamptz DEFAULT NULL)
RETURNS TABLE (receipt bigint, token uuid) LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET lock_timeout = '100ms' AS $awa$
#variable_conflict use_column
DECLARE
    v_now  timestamptz := coalesce(p_now, clock_timestamp());
    v_held bigint[];
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    v_held := /*schema*/awa.hold_attempts(p_claim_slots, p_nonces, p_receipts);
    RETURN QUERY
    WITH noted AS MATERIALIZED (
        SELECT l.receipt_id, l.job_id, l.run_lease, w.progress, w.token
        FROM unnest(p_receipts, p_progress, p_tokens) AS w (receipt, progress, token)
        JOIN /*schema*/awa.leases AS l ON l.receipt_id = w.receipt
        WHERE w.receipt = ANY (v_held)
    ), written AS (
        INSERT INTO /*schema*/awa.attempt_state AS s (job_id, run_lease, heartbeat_at, callback_lease, token, progress)
        SELECT n.job_id, n.run_lease, v_now, CASE WHEN n.token IS NOT NULL THEN n.run_lease END, n.token, n.progress
        FROM noted AS n ORDER BY n.job_id
        ON CONFLICT (job_id) DO UPDATE
        SET run_lease = excluded.run_lease, heartbeat_at = greatest(s.heartbeat_at, excluded.heartbeat_at),
            progress = coalesce(excluded.progress, s.progress),
            -- The first token of an attempt stays; with it what came before goes.
            callback_lease = coalesce(excluded.callback_lease, s.callback_lease),
            token = CASE WHEN excluded.token IS NULL OR s.callback_lease = excluded.run_lease
                         THEN s.token ELSE excluded.token END,
            called_at = CASE WHEN excluded.token IS NULL OR s.callback_lease = excluded.run_lease THEN s.called_at END,
            payload = CASE WHEN excluded.token IS NULL OR s.callback_lease = excluded.run_lease THEN s.payload END
        RETURNING s.job_id, CASE WHEN s.callback_lease = s.run_lease THEN s.token END AS token
    )
    SELECT n.receipt_id, t.token FROM written AS t JOIN noted AS n ON n.job_id = t.job_id;
END
$awa$;
