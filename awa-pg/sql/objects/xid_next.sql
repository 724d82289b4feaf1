-- Purpose: the transaction number after this one.
-- Parameters: a transaction.
-- Returns: its number plus one.
-- Locks: none.
-- Caller: frontier_probes, frontier_after.
CREATE OR REPLACE FUNCTION /*schema*/awa.xid_next(p_xid xid8) RETURNS xid8
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $awa$
    SELECT (p_xid::text::bigint + 1)::text::xid8
$awa$;
