-- Purpose: a page of the deadline sweep over the row-local claims of a slot.
-- Parameters: slot; (deadline_at, job, lease) to start behind; last (deadline_at, job, lease) or NULLs; limit; the present.
-- Returns: receipt, job, lease, nonce, deadline_at, whether it is closed.
-- Locks: as the function.
-- Caller: rescue.
SELECT p.receipt_id, p.job_id, p.run_lease, p.nonce, p.deadline_at, p.is_closed
FROM /*schema*/awa.deadline_rows(
    $1::smallint, $2::timestamptz, $3::bigint, $4::bigint, $5::timestamptz, $6::bigint, $7::bigint, $8::bigint,
    $9::timestamptz) AS p
