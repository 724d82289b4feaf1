-- Purpose: whether the schema is in the cluster that it was installed in or repaired for last.
-- Parameters: none.
-- Returns: whether it was carried here from another one; version of the server.
-- Locks: ACCESS SHARE on installation.
-- Caller: doctor.
SELECT /*schema*/awa.is_foreign(), pg_catalog.current_setting('server_version')
