-- Purpose: moves the place from which claims look for rows that were carried over past those that are gone for good: claimed,
--   moved or cancelled by a transaction that everybody sees from now on. What it finds stays true: a row that comes later
--   carries the number of a transaction that still ran, or had not begun. Two that run at once only repeat each other.
-- Parameters: none.
-- Returns: whether it moved; never in a transaction that has written.
-- Locks: ACCESS SHARE on carried_entries, queue_lanes and lane_hints; nothing where nothing was ever carried over.
-- Caller: Maintainer::drain.
CREATE OR REPLACE FUNCTION /*schema*/awa.raise_carried_floor() RETURNS boolean
LANGUAGE plpgsql VOLATILE SET jit = off SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $awa$
DECLARE
    v_file  bigint := pg_relation_filenode('/*schema*/awa.carried_entries');
    v_floor xid8;
    v_next  bigint;
BEGIN
    -- A transaction does not count as running for itself.
    IF pg_relation_size('/*schema*/awa.carried_entries') = 0 OR /*schema*/awa.is_foreign()
       OR pg_current_xact_id_if_assigned() IS NOT NULL THEN
        RETURN false;
    END IF;
    IF v_file IS DISTINCT FROM (SELECT s.last_value FROM /*schema*/awa.carried_floor_file AS s) THEN
        PERFORM setval('/*schema*/awa.carried_floor_xid', 1);
        PERFORM setval('/*schema*/awa.carried_floor_file', v_file);
    END IF;
    v_floor := /*schema*/awa.carried_floor();
    -- One statement: the rows that are there, and below which transaction nobody can insert any, of one moment.
    SELECT least(pg_snapshot_xmin(pg_current_snapshot())::text::bigint, min(f.moved_xid::text::bigint)) INTO v_next
    FROM (SELECT l.lane_id FROM /*schema*/awa.queue_lanes AS l
          UNION SELECT h.lane_id FROM /*schema*/awa.lane_hints AS h) AS k
    CROSS JOIN LATERAL (
        SELECT c.moved_xid FROM /*schema*/awa.carried_entries AS c
        WHERE c.lane_id = k.lane_id AND c.moved_xid >= v_floor
        ORDER BY c.moved_xid, c.xid, c.job_id LIMIT 1) AS f;
    IF v_next > v_floor::text::bigint THEN
        PERFORM setval('/*schema*/awa.carried_floor_xid', v_next);
        RETURN true;
    END IF;
    RETURN false;
END
$awa$;
