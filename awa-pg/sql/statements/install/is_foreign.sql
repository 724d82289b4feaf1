-- Purpose: whether the schema was carried here from another cluster and not repaired since.
-- Parameters: none.
-- Returns: true or false.
-- Locks: as the function.
-- Caller: check_ready.
SELECT /*schema*/awa.is_foreign()
