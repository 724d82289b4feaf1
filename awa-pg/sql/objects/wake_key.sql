-- Purpose: the advisory lock of a wake-up bucket, different for each schema of one database.
-- Parameters: bucket 0 to 63.
-- Returns: the key.
-- Locks: none.
-- Caller: wake, the listeners of the drivers.
CREATE OR REPLACE FUNCTION /*schema*/awa.wake_key(p_bucket integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $awa$
    SELECT (pg_catalog.hashtextextended('awa wake-up of ' OPERATOR(pg_catalog.||) '/*schema*/awa', 0)
            OPERATOR(pg_catalog.&) (-64)::bigint) OPERATOR(pg_catalog.|) p_bucket::bigint
$awa$;
