-- Purpose: whether the schema is in the cluster that it was installed in or repaired for last.
-- Parameters: none.
-- Returns: whether it was carried here from another one; version of the server.
-- Locks: none.
-- Caller: doctor.
SELECT (pg_catalog.pg_control_system()).system_identifier <> /*schema*/awa.home_cluster(), current_setting('server_version')
