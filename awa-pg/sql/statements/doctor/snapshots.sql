-- Purpose: the sessions of this server, but for this one and for vacuum, whose transaction keeps dead rows from being
--   removed or is still writing.
-- Parameters: limit.
-- Returns: process, role and application, state, microseconds since the transaction began; oldest first.
-- Locks: none.
-- Caller: doctor.
SELECT a.pid, concat_ws(' ', coalesce(a.usename::text, a.backend_type), nullif(a.application_name, '')),
       coalesce(a.state, 'at work'), (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint
FROM pg_catalog.pg_stat_activity AS a
WHERE (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL) AND a.xact_start IS NOT NULL
  AND a.pid <> pg_backend_pid() AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
ORDER BY a.xact_start, a.pid LIMIT $1::bigint
