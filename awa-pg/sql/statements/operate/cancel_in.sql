-- Purpose: cancels jobs in the caller's transaction.
-- Parameters: ids, reason, present.
-- Returns: position from 1, answer.
-- Locks: as the function request_cancel.
-- Caller: cancel in a driver's transaction.
SELECT r.position_of_id, r.answer FROM /*schema*/awa.request_cancel($1::bigint[], $2::text, $3::timestamptz) AS r
