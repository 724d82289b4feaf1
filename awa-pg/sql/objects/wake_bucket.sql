-- Purpose: which of the 64 wake-up buckets a queue belongs to. Buckets, so that ten thousand sleeping dispatchers hold
--   64 locks and not ten thousand.
-- Parameters: queue.
-- Returns: 0 to 63.
-- Locks: none.
-- Caller: wake, the listeners of the drivers.
CREATE OR REPLACE FUNCTION /*schema*/awa.wake_bucket(p_queue text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $awa$
    SELECT (pg_catalog.hashtextextended(p_queue, 0) OPERATOR(pg_catalog.&) 63)::integer
$awa$;
