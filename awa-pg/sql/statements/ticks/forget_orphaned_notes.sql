-- Purpose: forgets what was noted for jobs that ended without it.
-- Parameters: present.
-- Returns: how many.
-- Locks: as the function.
-- Caller: Maintainer::tidy.
SELECT /*schema*/awa.forget_orphaned_notes($1::timestamptz)
