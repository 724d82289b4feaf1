-- Purpose: whether a frontier has passed a row: the one spelling of it in SQL, as Frontier::passed is in awa-core. Its
--   text becomes part of the caller's statement, so its names say where they are.
-- Parameters: the frontier (seen, part_xids, part_jobs; seen NULL: nothing was ever taken); transaction and id of the
--   row.
-- Returns: true when the row was taken, or skipped under a tombstone.
-- Locks: none.
-- Caller: the views jobs and waiting_rows, passing_0, bury_waiting_0.
CREATE OR REPLACE FUNCTION /*schema*/awa.is_passed(
    p_seen pg_snapshot, p_part_xids xid8[], p_part_jobs bigint[], p_xid xid8, p_job bigint)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $awa$
    SELECT p_seen IS NOT NULL AND (
        pg_catalog.pg_visible_in_snapshot(p_xid, p_seen)
        OR coalesce(p_job <= p_part_jobs[pg_catalog.array_position(p_part_xids, p_xid)], false))
$awa$;
