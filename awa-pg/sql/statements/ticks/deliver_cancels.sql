-- Purpose: carries out cancels that were asked for in transactions of applications.
-- Parameters: present.
-- Returns: how many.
-- Locks: as the function.
-- Caller: Maintainer::tidy.
SELECT /*schema*/awa.deliver_cancels($1::timestamptz)
