-- Purpose: whether the schema, or the rows in it, were carried here from another cluster and not repaired since.
-- Parameters: none.
-- Returns: true or false.
-- Locks: ACCESS SHARE on installation.
-- Caller: check_ready, repair, doctor.
-- depends on: home_cluster
CREATE OR REPLACE FUNCTION /*schema*/awa.is_foreign() RETURNS boolean
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    RETURN (pg_control_system()).system_identifier <> /*schema*/awa.home_cluster()
        OR EXISTS (SELECT FROM /*schema*/awa.installation AS i WHERE i.cluster <> /*schema*/awa.home_cluster());
END
$awa$;
