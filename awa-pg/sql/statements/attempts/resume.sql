-- Purpose: takes callbacks from outside.
-- Parameters: as the function resume_attempts.
-- Returns: position from 1, answer.
-- Locks: as the function.
-- Caller: Attempts::resume.
SELECT r.position_of_token, r.answer
FROM /*schema*/awa.resume_attempts($1::uuid[], $2::json[], $3::timestamptz) AS r
