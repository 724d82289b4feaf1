-- Purpose: writes down what running attempts note.
-- Parameters: as the function note_attempts.
-- Returns: as the function note_attempts.
-- Locks: as the function.
-- Caller: Attempts::note.
SELECT n.receipt, n.token
FROM /*schema*/awa.note_attempts($1::smallint[], $2::bigint[], $3::bigint[], $4::json[], $5::uuid[], $6::timestamptz) AS n
