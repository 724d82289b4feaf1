-- Purpose: builds a snapshot from a set: every transaction below xmax has ended, but for those that run.
-- Parameters: xmax; running transactions, in any order, all below xmax.
-- Returns: the snapshot.
-- Locks: none.
-- Caller: own_snapshot, frontier_after.
CREATE OR REPLACE FUNCTION /*schema*/awa.snapshot_of(p_xmax xid8, p_running xid8[]) RETURNS pg_snapshot
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $awa$
BEGIN
    IF coalesce(cardinality(p_running), 0) = 0 THEN
        RETURN (p_xmax::text || ':' || p_xmax::text || ':')::pg_snapshot;
    END IF;
    RETURN (SELECT ((array_agg(x ORDER BY x))[1]::text || ':' || p_xmax::text || ':'
                    || string_agg(x::text, ',' ORDER BY x))::pg_snapshot
            FROM unnest(p_running) AS x);
END
$awa$;
