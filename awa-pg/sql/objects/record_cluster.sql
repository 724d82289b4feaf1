-- Purpose: remembers the cluster that this schema lives in, as the body of home_cluster(), so that no call has to read a
--   table to know it. A dump carries the body along, and thereby tells a restored schema from one that never moved.
-- Parameters: none.
-- Returns: nothing.
-- Locks: those of replacing a function; the row of installation.
-- Caller: home_cluster at installation, repair.
CREATE OR REPLACE FUNCTION /*schema*/awa.record_cluster() RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION /*schema*/awa.home_cluster() RETURNS bigint '
        'LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $cluster$ SELECT %L::bigint $cluster$',
        (pg_catalog.pg_control_system()).system_identifier);
    -- Transaction numbers of another cluster say nothing here.
    PERFORM setval('/*schema*/awa.carried_floor_file', 1);
    -- A restore of data alone carries this along.
    UPDATE /*schema*/awa.installation SET cluster = (pg_catalog.pg_control_system()).system_identifier;
END
$awa$;
