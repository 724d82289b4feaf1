-- Purpose: draws a transaction number for one more dispatcher of a bucket that is announced already.
-- Parameters: none.
-- Returns: the transaction number.
-- Locks: none.
-- Caller: wake-ups.
SELECT pg_current_xact_id()::text::bigint
