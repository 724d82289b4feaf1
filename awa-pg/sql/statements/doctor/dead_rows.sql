-- Purpose: the tables of the schema that have dead rows, as the server's statistics count them.
-- Parameters: limit.
-- Returns: table, whether it is only appended to and truncated, live rows, dead rows; most dead rows first.
-- Locks: none.
-- Caller: doctor.
SELECT t.relname::text, c.relispartition AND c.relname ~ '_[0-9]+$' AND c.relname !~ '^leases_', t.n_live_tup, t.n_dead_tup
FROM pg_catalog.pg_stat_all_tables AS t JOIN pg_catalog.pg_class AS c ON c.oid = t.relid
WHERE t.schemaname = '/*schema*/awa' AND t.n_dead_tup > 0 ORDER BY t.n_dead_tup DESC, t.relname LIMIT $1::bigint
