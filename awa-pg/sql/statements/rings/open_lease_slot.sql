-- Purpose: makes a slot of the lease ring the open one.
-- Parameters: slot, generation, present.
-- Returns: false when somebody else opened that generation.
-- Locks: as the function.
-- Caller: rotate.
SELECT /*schema*/awa.open_lease_slot($1::smallint, $2::bigint, coalesce($3::timestamptz, pg_catalog.clock_timestamp()))
