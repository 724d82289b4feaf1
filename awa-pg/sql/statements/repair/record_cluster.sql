-- Purpose: puts this cluster on record as the one that the schema lives in.
-- Parameters: none.
-- Returns: nothing.
-- Locks: those of replacing a function.
-- Caller: repair.
SELECT /*schema*/awa.record_cluster()
