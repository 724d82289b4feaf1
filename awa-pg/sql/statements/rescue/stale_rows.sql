-- Purpose: a page of the stale sweep over the row-local claims of a slot.
-- Parameters: slot; (claimed_at, job, lease) to start behind; last (claimed_at, job, lease) or NULLs; limit.
-- Returns: receipt, job, lease, nonce, claimed_at, whether it is closed, last beat of its instance, whether the instance has
--   withdrawn since, and the staleness time that it asked for.
-- Locks: as the function.
-- Caller: rescue.
SELECT p.receipt_id, p.job_id, p.run_lease, p.nonce, p.claimed_at, p.is_closed, p.last_beat, p.is_withdrawn,
       p.staleness_us
FROM /*schema*/awa.stale_rows(
    $1::smallint, $2::timestamptz, $3::bigint, $4::bigint, $5::timestamptz, $6::bigint, $7::bigint, $8::bigint) AS p
