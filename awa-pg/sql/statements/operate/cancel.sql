-- Purpose: cancels jobs.
-- Parameters: ids, reason, present.
-- Returns: position from 1, answer.
-- Locks: as the function cancel_jobs.
-- Caller: Operator::cancel.
SELECT c.position_of_id, c.answer FROM /*schema*/awa.cancel_jobs($1::bigint[], $2::text, $3::timestamptz) AS c
