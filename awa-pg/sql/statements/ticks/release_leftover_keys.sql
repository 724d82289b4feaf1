-- Purpose: deletes keys that could not be deleted when their jobs gave them back.
-- Parameters: none.
-- Returns: how many.
-- Locks: as the function.
-- Caller: Maintainer::tidy.
SELECT /*schema*/awa.release_leftover_keys()
