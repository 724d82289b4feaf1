-- Purpose: forgets what was noted for jobs that ended without it: one that was replaced before it ran again, or whose
--   history was carried away by hand. Looks at few rows a time, each once an hour.
-- Parameters: the present for tests.
-- Returns: how many were forgotten.
-- Locks: the rows looked at, only tried.
-- Caller: Maintainer::tidy.
CREATE OR REPLACE FUNCTION /*schema*/awa.forget_orphaned_notes(p_now timestamptz DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET jit = off SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_now     timestamptz := coalesce(p_now, clock_timestamp());
    v_due     bigint[];
    v_orphans bigint[];
BEGIN
    IF pg_relation_size('/*schema*/awa.attempt_state') = 0 THEN
        RETURN 0;
    END IF;
    SELECT array_agg(d.job_id) INTO v_due
    FROM (SELECT s.job_id FROM /*schema*/awa.attempt_state AS s
          WHERE greatest(s.heartbeat_at, s.checked_at) <= v_now - interval '1 hour'
          ORDER BY greatest(s.heartbeat_at, s.checked_at) LIMIT 100 FOR UPDATE SKIP LOCKED) AS d;
    IF v_due IS NULL THEN
        RETURN 0;
    END IF;
    -- A statement of its own: what was locked cannot be noted for any more.
    SELECT coalesce(array_agg(u), '{}') INTO v_orphans FROM unnest(v_due) AS u
    WHERE NOT EXISTS (SELECT FROM /*schema*/awa.jobs AS j
                      WHERE j.job_id = u AND j.state NOT IN ('completed', 'cancelled', 'failed'));
    DELETE FROM /*schema*/awa.attempt_state AS s WHERE s.job_id = ANY (v_orphans);
    UPDATE /*schema*/awa.attempt_state AS s SET checked_at = v_now
    WHERE s.job_id = ANY (v_due) AND NOT s.job_id = ANY (v_orphans);
    RETURN cardinality(v_orphans);
END
$awa$;
