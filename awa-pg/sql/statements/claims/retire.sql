-- Purpose: withdraws an instance: what it claimed until now may be rescued at once.
-- Parameters: instance, present.
-- Returns: nothing.
-- Locks: the instance's row.
-- Caller: Consumer::retire.
UPDATE /*schema*/awa.runtime_instances SET retired_at = coalesce($2::timestamptz, clock_timestamp())
WHERE instance_id = $1::bigint
