-- Purpose: refuses to go on when the schema was carried into another cluster, by dump and restore, logical replication or
--   pg_upgrade. Transaction numbers start anew there, so that the cursors would take new rows for passed ones.
-- Parameters: none.
-- Returns: nothing; raises AW001 with the command that helps.
-- Locks: none. It reads no table. A session stays in one cluster, whose identity it reads from the control file once and keeps in a
--   setting.
-- Caller: enqueue_jobs, append_again, claim_jobs, peek_queues, unpassed_lanes.
-- depends on: home_cluster
CREATE OR REPLACE FUNCTION /*schema*/awa.assert_same_cluster() RETURNS void
LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    -- home_cluster() stands here itself and not in a function that is inlined: only so is the plan made anew when a
    -- repair changes it.
    IF pg_catalog.current_setting('awa.cluster', true)
        OPERATOR(pg_catalog.=) /*schema*/awa.home_cluster()::pg_catalog.text THEN
        RETURN;
    END IF;
    PERFORM pg_catalog.set_config(
        'awa.cluster', (pg_catalog.pg_control_system()).system_identifier::pg_catalog.text, false);
    IF pg_catalog.current_setting('awa.cluster')
        OPERATOR(pg_catalog.<>) /*schema*/awa.home_cluster()::pg_catalog.text THEN
        RAISE EXCEPTION 'the schema was carried here from another PostgreSQL cluster and is not repaired yet'
            USING ERRCODE = 'AW001', CONSTRAINT = 'AW001',
                HINT = 'run `awa repair`; nothing is lost until then';
    END IF;
END
$awa$;
