-- Purpose: announces that dispatchers of some buckets are about to sleep, and draws a transaction number afterwards: whoever
--   tested one of the buckets before the announcement has a smaller one. The number serves every dispatcher of these buckets
--   for as long as the locks are held.
-- Parameters: buckets that this session does not hold.
-- Returns: the buckets that it holds now; the transaction number, NULL when a producer was testing one of the buckets at this
--   very moment: ask again for those that are left.
-- Locks: a shared session lock on each bucket, until withdraw.
-- Caller: wake-ups.
WITH tried AS MATERIALIZED (
    SELECT b AS bucket, pg_catalog.pg_try_advisory_lock_shared(/*schema*/awa.wake_key(b)) AS is_held
    FROM pg_catalog.unnest($1::integer[]) AS b)
SELECT pg_catalog.array_agg(t.bucket) FILTER (WHERE t.is_held),
       CASE WHEN pg_catalog.bool_and(t.is_held) THEN pg_catalog.pg_current_xact_id()::text::bigint END
FROM tried AS t
