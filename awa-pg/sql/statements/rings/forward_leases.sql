-- Purpose: moves leases of an old slot into the open one.
-- Parameters: slot, at most so many.
-- Returns: how many were moved, how many are left.
-- Locks: as the function.
-- Caller: Maintainer::unpin.
SELECT f.moved, f.remaining FROM /*schema*/awa.forward_leases($1::smallint, $2::bigint) AS f
