-- Purpose: acts as the owner of the schema's tables until the end of the transaction, so that what is made belongs to the
--   same role as what is there.
-- Parameters: none.
-- Returns: the role.
-- Locks: none.
-- Caller: Operator::grow_ring.
SELECT pg_catalog.set_config('role', pg_catalog.pg_get_userbyid(c.relowner)::text, true)
FROM pg_catalog.pg_class AS c WHERE c.oid = '/*schema*/awa.installation'::pg_catalog.regclass
