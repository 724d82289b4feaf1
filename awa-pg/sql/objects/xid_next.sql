-- Purpose: the transaction number after this one.
-- Parameters: a transaction.
-- Returns: its number plus one, but for the last of an epoch of 2^32: the first three numbers of an epoch are never given
--   to a transaction, and a snapshot that begins or ends at one does not parse.
-- Locks: none.
-- Caller: frontier_probes, frontier_after.
CREATE OR REPLACE FUNCTION /*schema*/awa.xid_next(p_xid xid8) RETURNS xid8
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $awa$
    SELECT (p_xid::pg_catalog.text::bigint OPERATOR(pg_catalog.+)
        CASE WHEN p_xid::pg_catalog.text::bigint OPERATOR(pg_catalog.&) 4294967295 OPERATOR(pg_catalog.=) 4294967295
             THEN 4 ELSE 1 END)::pg_catalog.text::pg_catalog.xid8
$awa$;
