-- Purpose: draws a transaction number for buckets whose locks are held, after a notification for one of them.
-- Parameters: none.
-- Returns: the transaction number.
-- Locks: none.
-- Caller: wake-ups.
SELECT pg_catalog.pg_current_xact_id()::text::bigint
