-- Purpose: removes jobs that have ended from every view. Rows of the rings are not touched: a finished job is hidden until
--   its slot is reclaimed, a dead one is deleted.
-- Parameters: ids; the present for tests.
-- Returns: a row per id in input order: position from 1, and the state the job was in; or 'contended' (somebody else is
--   changing it, or reclaiming its slot), '!<state>' (it has not ended), NULL (no such job).
-- Locks: the rows of dlq_entries, only tried; ROW EXCLUSIVE on children of receipt_completion_tombstones, waiting at most
--   100 ms for whoever is reclaiming the slot; where some job is unique, as release_unique_keys.
-- Caller: Operator::delete.
CREATE OR REPLACE FUNCTION /*schema*/awa.delete_jobs(p_jobs bigint[], p_now timestamptz DEFAULT NULL)
RETURNS TABLE (position_of_id integer, answer text) LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_job record;
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    FOR v_index IN 1..cardinality(p_jobs) LOOP
        position_of_id := v_index;
        -- One statement each: a statement sees what was committed when it began, and the job may be on its way.
        SELECT j.state, j.run_lease INTO v_job FROM /*schema*/awa.find_job(p_jobs[v_index]) AS j;
        answer := v_job.state;
        IF answer = 'dead' THEN
            PERFORM FROM /*schema*/awa.dlq_entries AS q WHERE q.job_id = p_jobs[v_index] FOR UPDATE SKIP LOCKED;
            IF FOUND THEN
                DELETE FROM /*schema*/awa.dlq_entries AS q WHERE q.job_id = p_jobs[v_index];
                -- As a cancelled job, which holds no key.
                PERFORM /*schema*/awa.release_unique_keys(ARRAY[p_jobs[v_index]], 64::smallint);
                PERFORM /*schema*/awa.forget_notes(ARRAY[p_jobs[v_index]]);
            ELSE
                answer := 'contended';
            END IF;
        ELSIF answer IN ('completed', 'failed', 'cancelled') THEN
            answer := /*schema*/awa.hide_finished(p_jobs[v_index], answer, v_job.run_lease, v_now);
        ELSE
            answer := '!' || answer;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$awa$;
