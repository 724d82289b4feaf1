-- Purpose: the running list of a snapshot, which ascends, as an array: in an expression it costs no statement, as a query of
--   pg_snapshot_xip would.
-- Parameters: a snapshot.
-- Returns: the transactions; an empty array when none runs.
-- Locks: none.
-- Caller: frontier_probes, frontier_after.
CREATE OR REPLACE FUNCTION /*schema*/awa.running_of(p_snapshot pg_snapshot) RETURNS xid8[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $awa$
    SELECT pg_catalog.string_to_array(
        pg_catalog.split_part(p_snapshot::pg_catalog.text, ':', 3), ',')::pg_catalog.xid8[]
$awa$;
