-- Purpose: makes due deferred jobs ready.
-- Parameters: limit, present.
-- Returns: how many; whether there may be more.
-- Locks: as the function.
-- Caller: Maintainer::promote.
SELECT p.jobs, p.more FROM /*schema*/awa.promote_due($1::integer, $2::timestamptz) AS p
