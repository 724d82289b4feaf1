-- Purpose: the current snapshot in which the caller's own transaction counts as running. PostgreSQL leaves it out of
--   the running list, so that it looks finished; a cursor that stored such a snapshot would lose every row that the
--   transaction appends afterwards.
-- Parameters: none.
-- Returns: the snapshot of this very moment, not of the calling statement.
-- Locks: none.
-- Caller: claim_jobs, drain and every other place that stores or compares a snapshot.
-- depends on: snapshot_of
CREATE OR REPLACE FUNCTION /*schema*/awa.own_snapshot() RETURNS pg_snapshot
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_snapshot pg_snapshot := pg_current_snapshot();
    v_own      xid8 := pg_current_xact_id_if_assigned();
BEGIN
    IF v_own IS NULL OR v_own >= pg_snapshot_xmax(v_snapshot) THEN
        RETURN v_snapshot;
    END IF;
    RETURN /*schema*/awa.snapshot_of(
        pg_snapshot_xmax(v_snapshot), ARRAY(SELECT pg_snapshot_xip(v_snapshot) UNION ALL SELECT v_own));
END
$awa$;
