-- Purpose: adds a slot to a ring.
-- Parameters: name of the ring, slot.
-- Returns: how many tables were made for it.
-- Locks: as the function.
-- Caller: Operator::grow_ring.
SELECT /*schema*/awa.add_ring_slot($1::text, $2::smallint)
