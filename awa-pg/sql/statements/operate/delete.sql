-- Purpose: removes jobs that have ended from every view.
-- Parameters: ids, present.
-- Returns: position from 1, answer.
-- Locks: as the function delete_jobs.
-- Caller: Operator::delete.
SELECT d.position_of_id, d.answer FROM /*schema*/awa.delete_jobs($1::bigint[], $2::timestamptz) AS d
