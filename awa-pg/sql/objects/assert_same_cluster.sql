-- Purpose: refuses to go on when the schema was carried into another cluster, by dump and restore, logical replication or
--   pg_upgrade. Transaction numbers start anew there, so that the cursors would take new rows for passed ones.
-- Parameters: none.
-- Returns: nothing; raises AW001 with the command that helps.
-- Locks: none. It reads no table.
-- Caller: enqueue_jobs, append_again, claim_jobs, peek_queues, unpassed_lanes.
-- depends on: home_cluster
CREATE OR REPLACE FUNCTION /*schema*/awa.assert_same_cluster() RETURNS void
LANGUAGE plpgsql STABLE AS $awa$
BEGIN
    IF (pg_catalog.pg_control_system()).system_identifier <> /*schema*/awa.home_cluster() THEN
        RAISE EXCEPTION 'the schema was carried here from another PostgreSQL cluster and is not repaired yet'
            USING ERRCODE = 'AW001', CONSTRAINT = 'AW001',
                HINT = 'run `awa repair`; nothing is lost until then';
    END IF;
END
$awa$;
