-- Purpose: puts jobs that wait into another queue, to another priority, or both, in a transaction of its own; the answers are
--   final.
-- Parameters: ids; queue and priority, each NULL: as it is; the present for tests.
-- Returns: a row per id in input order: position from 1, and the state the job is in; or 'contended' (somebody else holds its
--   lane or its row: ask again), '!<state>' (it does not wait), NULL (no such job).
-- Locks: per ready job the advisory lock of its lane, only tried; waits at most 100 ms for an open transaction that has replaced
--   a job; ROW EXCLUSIVE on the tables written.
-- Caller: Operator::move_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.move_jobs(
    p_jobs bigint[], p_queue text, p_priority smallint, p_now timestamptz DEFAULT NULL)
RETURNS TABLE (position_of_id integer, answer text) LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $awa$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' OR pg_current_xact_id_if_assigned() IS NOT NULL THEN
        RAISE EXCEPTION 'move_jobs must be a READ COMMITTED statement of its own' USING ERRCODE = 'AW003', CONSTRAINT = 'AW003',
            HINT = 'inside another transaction it would hold lanes until that transaction ends';
    END IF;
    IF octet_length(p_queue) NOT BETWEEN 1 AND 200 OR p_priority NOT BETWEEN 1 AND 4 THEN
        RAISE EXCEPTION 'queue % with priority % is no place for a job', p_queue, p_priority USING ERRCODE = 'AW003', CONSTRAINT = 'AW003',
            HINT = 'a queue has 1 to 200 bytes, a priority is 1 to 4';
    END IF;
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    FOR v_index IN 1..cardinality(p_jobs) LOOP
        position_of_id := v_index;
        -- One statement each: a statement sees what was committed when it began, and the job may be on its way.
        answer := /*schema*/awa.move_deferred(p_jobs[v_index], p_queue, p_priority);
        IF answer IS NULL THEN
            answer := /*schema*/awa.move_carried(p_jobs[v_index], p_queue, p_priority, v_now);
        END IF;
        IF answer IS NULL THEN
            answer := /*schema*/awa.move_in_ring(p_jobs[v_index], p_queue, p_priority, v_now);
        END IF;
        IF answer IS NULL THEN
            SELECT CASE WHEN j.state IN ('ready', 'deferred') THEN 'contended' ELSE '!' || j.state END
            INTO answer FROM /*schema*/awa.find_job(p_jobs[v_index]) AS j;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$awa$;
