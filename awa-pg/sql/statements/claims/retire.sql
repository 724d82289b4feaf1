-- Purpose: withdraws an instance.
-- Parameters: instance.
-- Returns: nothing.
-- Locks: the instance's row.
-- Caller: Consumer::retire.
DELETE FROM /*schema*/awa.runtime_instances WHERE instance_id = $1::bigint
