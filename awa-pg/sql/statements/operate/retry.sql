-- Purpose: makes dead and deferred jobs ready.
-- Parameters: ids, present.
-- Returns: position from 1, answer.
-- Locks: as the function retry_jobs.
-- Caller: Operator::retry.
SELECT r.position_of_id, r.answer FROM /*schema*/awa.retry_jobs($1::bigint[], $2::timestamptz) AS r
