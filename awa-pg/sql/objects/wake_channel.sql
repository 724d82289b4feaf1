-- Purpose: the notification channel of this schema: short and plain whatever the schema is called.
-- Parameters: none.
-- Returns: the channel.
-- Locks: none.
-- Caller: wake, the listeners of the drivers.
CREATE OR REPLACE FUNCTION /*schema*/awa.wake_channel() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $awa$
    SELECT 'awa_' OPERATOR(pg_catalog.||) pg_catalog.substr(pg_catalog.md5('/*schema*/awa'), 1, 16)
$awa$;
