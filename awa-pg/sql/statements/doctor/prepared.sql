-- Purpose: the prepared transactions of this server: they hold snapshots and locks until somebody ends them.
-- Parameters: limit.
-- Returns: name, database, microseconds since it was prepared; oldest first.
-- Locks: none.
-- Caller: doctor.
SELECT p.gid, p.database::text, (extract(epoch FROM clock_timestamp() - p.prepared) * 1000000)::bigint
FROM pg_catalog.pg_prepared_xacts AS p ORDER BY p.prepared, p.gid LIMIT $1::bigint
