-- Purpose: the first statement of a transaction that holds its snapshot as long as it is open, and does nothing else.
-- Parameters: none.
-- Returns: the oldest transaction that was running, as text.
-- Locks: none.
-- Caller: hold_snapshot.
SELECT pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::text
