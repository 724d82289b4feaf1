-- Purpose: builds a snapshot from a set: every transaction below xmax has ended, but for those that run.
-- Parameters: xmax; running transactions, in any order, all below xmax.
-- Returns: the snapshot.
-- Locks: none.
-- Caller: own_snapshot, frontier_after.
CREATE OR REPLACE FUNCTION /*schema*/awa.snapshot_of(p_xmax xid8, p_running xid8[]) RETURNS pg_snapshot
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $awa$
DECLARE
    v_running xid8[] := p_running;
BEGIN
    IF coalesce(cardinality(v_running), 0) = 0 THEN
        RETURN (p_xmax::text || ':' || p_xmax::text || ':')::pg_snapshot;
    END IF;
    IF cardinality(v_running) > 1 THEN
        v_running := ARRAY(SELECT x FROM unnest(p_running) AS x ORDER BY x);
    END IF;
    RETURN (v_running[1]::text || ':' || p_xmax::text || ':' || array_to_string(v_running, ','))::pg_snapshot;
END
$awa$;
