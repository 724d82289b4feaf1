-- Purpose: makes the function home_cluster(), which returns the system identifier of the cluster that this schema was
--   installed in or repaired for last. Made once: an upgrade of a schema that was moved must not hide that it was.
-- Parameters: none.
-- Returns: bigint.
-- Locks: none.
-- Caller: assert_same_cluster, repair, doctor.
-- depends on: record_cluster
DO $awa$
BEGIN
    IF to_regprocedure('/*schema*/awa.home_cluster()') IS NULL THEN
        PERFORM /*schema*/awa.record_cluster();
    END IF;
END
$awa$;
