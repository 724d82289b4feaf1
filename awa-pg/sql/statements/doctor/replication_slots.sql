-- Purpose: the replication slots of this server and what they hold back.
-- Parameters: limit.
-- Returns: name, whether somebody is connected, how many transactions ago the oldest was whose rows it keeps (NULL: it
--   keeps no rows), bytes of log that it keeps.
-- Locks: none.
-- Caller: doctor.
SELECT s.slot_name::text, s.active, greatest(age(s.xmin), age(s.catalog_xmin))::bigint,
       CASE WHEN pg_is_in_recovery() OR s.restart_lsn IS NULL THEN 0
            ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn) END::bigint
FROM pg_catalog.pg_replication_slots AS s ORDER BY s.slot_name LIMIT $1::bigint
