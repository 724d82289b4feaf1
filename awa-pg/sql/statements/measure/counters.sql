-- Purpose: what the server has counted so far, for whoever measures what jobs cost: asked before and after, the
--   difference is the cost. A backend adds its share when it ends, or when it is idle a second after the last time.
-- Parameters: none.
-- Returns: bytes of log written by the whole server; transactions committed in this database; rows inserted, updated and
--   deleted in the tables of the schema.
-- Locks: ACCESS SHARE on catalogs.
-- Caller: counters.
SELECT
    (pg_catalog.pg_current_wal_insert_lsn() OPERATOR(pg_catalog.-) '0/0'::pg_catalog.pg_lsn)::bigint AS wal_bytes,
    (
        SELECT d.xact_commit
        FROM pg_catalog.pg_stat_database AS d
        WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
    ) AS commits,
    coalesce(pg_catalog.sum(t.n_tup_ins), 0)::bigint AS inserted,
    coalesce(pg_catalog.sum(t.n_tup_upd), 0)::bigint AS updated,
    coalesce(pg_catalog.sum(t.n_tup_del), 0)::bigint AS deleted
FROM pg_catalog.pg_stat_all_tables AS t
WHERE t.schemaname OPERATOR(pg_catalog.=) '/*schema*/awa'
