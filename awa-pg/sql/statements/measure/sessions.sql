-- Purpose: the sessions of this role in this database besides the one that asks. What a session did is counted in full when
--   it is gone.
-- Parameters: none.
-- Returns: their process ids.
-- Locks: none.
-- Caller: sessions.
SELECT a.pid
FROM pg_catalog.pg_stat_activity AS a
WHERE a.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
    AND a.usename OPERATOR(pg_catalog.=) current_user
    AND a.backend_type OPERATOR(pg_catalog.=) 'client backend'
    AND a.pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
