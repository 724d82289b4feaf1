-- Purpose: gives what was made for a slot the grants of slot 0.
-- Parameters: slot.
-- Returns: nothing.
-- Locks: none that matter.
-- Caller: Operator::grow_ring.
SELECT /*schema*/awa.grant_as_slot_0($1::smallint)
