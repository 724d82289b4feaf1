-- Purpose: puts jobs that wait into another queue or to another priority.
-- Parameters: ids, queue or NULL, priority or NULL, present.
-- Returns: position from 1, answer.
-- Locks: as the function move_jobs.
-- Caller: Operator::move_jobs.
SELECT m.position_of_id, m.answer
FROM /*schema*/awa.move_jobs($1::bigint[], $2::text, $3::smallint, $4::timestamptz) AS m
