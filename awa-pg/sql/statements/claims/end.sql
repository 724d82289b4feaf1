-- Purpose: ends attempts in any other way.
-- Parameters: as the function end_attempts.
-- Returns: the closed receipts.
-- Locks: as the function.
-- Caller: Consumer::close, rescue.
SELECT e.receipt
FROM /*schema*/awa.end_attempts($1::smallint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::text[], $6::bigint[],
    $7::text[], $8::json[], $9::timestamptz) AS e (receipt)
