-- Purpose: how functions are dropped that are not of this version: those whose file is gone, and those of a name that was just
--   made with other arguments.
-- Parameters: names of functions that this transaction has made or replaced; names that this version does not have any more.
-- Returns: a script per function.
-- Locks: none.
-- Caller: prepare_schema, grow_ring.
SELECT pg_catalog.format('DROP %s %I.%I(%s)', CASE p.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END, n.nspname,
    p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid))
FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = '/*schema*/awa'
  AND (p.proname = ANY ($2::text[])
       -- What this transaction has made or replaced bears its number.
       OR p.proname = ANY ($1::text[])
          AND p.xmin::text::bigint <> pg_catalog.pg_current_xact_id()::text::bigint & 4294967295)
