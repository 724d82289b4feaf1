-- Purpose: turns open attempts into leases.
-- Parameters: parallel arrays: claim slot, nonce, receipt.
-- Returns: how many.
-- Locks: as the function materialize_attempts.
-- Caller: Maintainer::unpin.
SELECT /*schema*/awa.materialize_attempts($1::smallint[], $2::bigint[], $3::bigint[])
