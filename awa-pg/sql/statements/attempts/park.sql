-- Purpose: parks running attempts.
-- Parameters: as the function park_attempts.
-- Returns: the receipts that were parked, or go on because their callback came already.
-- Locks: as the function.
-- Caller: Consumer::close.
SELECT p.receipt
FROM /*schema*/awa.park_attempts($1::smallint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz)
    AS p (receipt)
