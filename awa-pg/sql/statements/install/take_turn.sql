-- Purpose: makes installations of one schema take turns; released with the transaction, also when its owner dies.
-- Parameters: none.
-- Returns: nothing.
-- Locks: an advisory lock, waited for no longer than lock_timeout.
-- Caller: prepare_schema.
SELECT pg_advisory_xact_lock(hashtextextended('awa installation of ' || '/*schema*/awa', 0))
