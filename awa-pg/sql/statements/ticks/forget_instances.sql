-- Purpose: forgets instances that have been silent for a day and hold nothing.
-- Parameters: present.
-- Returns: how many.
-- Locks: as the function.
-- Caller: Maintainer::tidy.
SELECT /*schema*/awa.forget_instances($1::timestamptz)
