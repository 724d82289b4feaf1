-- Purpose: ends attempts well with nothing to keep.
-- Parameters: as the function complete_attempts.
-- Returns: batch and closed receipts as text.
-- Locks: as the function.
-- Caller: Consumer::close.
SELECT c.batch_id, c.closed
FROM /*schema*/awa.complete_attempts($1::smallint[], $2::bigint[], $3::bigint[], $4::text[], $5::timestamptz) AS c
