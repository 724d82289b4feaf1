-- Purpose: makes dead and failed jobs ready again, with their attempts counted from zero, and deferred jobs at once, with
--   their attempts as they are. A dead or failed job takes the key again that it gave back.
-- Parameters: ids; the present for tests.
-- Returns: a row per id in input order: position from 1, and the state the job was in; or 'contended', '!<state>' (it is
--   in a state from which there is no retry), 'key:<id>' (that job holds the key that it would have to take again), NULL
--   (no such job).
-- Locks: as take_key_again and take_held_job; ROW EXCLUSIVE on one child of ready_entries.
-- Caller: Operator::retry.
CREATE OR REPLACE FUNCTION /*schema*/awa.retry_jobs(p_jobs bigint[], p_now timestamptz DEFAULT NULL)
RETURNS TABLE (position_of_id integer, answer text) LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_job record;
    v_key text;
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    FOR v_index IN 1..cardinality(p_jobs) LOOP
        position_of_id := v_index;
        SELECT j.state INTO answer FROM /*schema*/awa.find_job(p_jobs[v_index]) AS j;
        v_key := CASE WHEN answer IN ('dead', 'failed') THEN /*schema*/awa.take_key_again(p_jobs[v_index]) END;
        IF v_key IS NOT NULL THEN
            answer := v_key;
        ELSIF answer IN ('dead', 'failed', 'deferred') THEN
            SELECT j.job_id, j.run_lease, j.created_at, j.priority, j.shard, j.attempt, j.max_attempts, j.queue, j.kind,
                   j.args, j.metadata, j.last_error
            INTO v_job FROM /*schema*/awa.take_held_job(p_jobs[v_index], answer) AS j;
            IF v_job.job_id IS NULL THEN
                answer := 'contended';
            ELSE
                PERFORM /*schema*/awa.append_again(ARRAY[v_job.job_id], ARRAY[v_job.queue], ARRAY[v_job.priority],
                    ARRAY[v_job.shard], ARRAY[v_job.kind], ARRAY[v_job.args], ARRAY[v_job.max_attempts],
                    ARRAY[v_job.metadata], ARRAY[v_job.created_at], ARRAY[v_job.attempt], ARRAY[v_job.run_lease],
                    ARRAY[v_job.last_error], v_now);
            END IF;
        ELSE
            answer := '!' || answer;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$awa$;
