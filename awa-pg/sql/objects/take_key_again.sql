-- Purpose: lets a dead or failed job take the key again that it gave back when it failed for good.
-- Parameters: id of the job.
-- Returns: NULL when it has its key now, or has none; else the answer of retry_jobs: 'key:' and the id of the job that
--   holds it, or 'contended' when an open transaction has taken it, or somebody is changing the job.
-- Locks: its row of dlq_entries, or the advisory lock of a failed job (nobody locks a row of a ring), only tried, kept to
--   the end of the transaction, so that nobody else retries or deletes it meanwhile; ROW EXCLUSIVE on unique_claims, waiting at most 100 ms for an open transaction
--   that has inserted the same key; its rows of unique_releases.
-- Caller: retry_jobs.
-- depends on: failed_jobs, retry_key
CREATE OR REPLACE FUNCTION /*schema*/awa.take_key_again(p_job bigint) RETURNS text
LANGUAGE plpgsql VOLATILE SET lock_timeout = '100ms' AS $awa$
DECLARE
    v_key    bytea;
    v_states smallint;
    v_holder bigint;
BEGIN
    SELECT q.unique_key, q.unique_states INTO v_key, v_states
    FROM /*schema*/awa.dlq_entries AS q WHERE q.job_id = p_job FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        IF NOT pg_try_advisory_xact_lock(/*schema*/awa.retry_key(p_job)) THEN
            RETURN 'contended';
        END IF;
        -- A new statement: it sees who has retried the job before this transaction held it.
        SELECT f.unique_key, f.unique_states INTO v_key, v_states
        FROM /*schema*/awa.failed_jobs AS f WHERE f.job_id = p_job;
    END IF;
    IF NOT FOUND THEN
        RETURN 'contended';
    END IF;
    IF v_key IS NULL THEN
        RETURN NULL;
    END IF;
    -- First of all, so that no tick takes away what this job is about to have again.
    DELETE FROM /*schema*/awa.unique_releases AS r WHERE r.job_id = p_job;
    FOR v_turn IN 1..8 LOOP
        INSERT INTO /*schema*/awa.unique_claims (key, job_id, states) VALUES (v_key, p_job, v_states)
        ON CONFLICT (key) DO NOTHING;
        SELECT max(c.job_id) INTO v_holder FROM /*schema*/awa.unique_claims AS c WHERE c.key = v_key;
        IF v_holder = p_job THEN
            RETURN NULL;
        ELSIF v_holder IS NOT NULL THEN
            RETURN 'key:' || v_holder;
        END IF;
    END LOOP;
    RETURN 'contended';
EXCEPTION WHEN lock_not_available THEN
    RETURN 'contended';
END
$awa$;
