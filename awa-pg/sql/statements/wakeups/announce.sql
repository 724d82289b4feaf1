-- Purpose: announces that dispatchers of a bucket are about to sleep, and draws a transaction number afterwards: whoever
--   tested the bucket before the announcement has a smaller one.
-- Parameters: bucket.
-- Returns: the transaction number; NULL when a producer was testing the bucket at this very moment: ask again.
-- Locks: a shared session lock on the bucket, until withdraw.
-- Caller: wake-ups.
SELECT CASE WHEN pg_catalog.pg_try_advisory_lock_shared(/*schema*/awa.wake_key($1::integer))
            THEN pg_catalog.pg_current_xact_id()::text::bigint END
