-- Purpose: changes the state of a slot of the lease ring, if it is still in the state that the decision saw.
-- Parameters: slot, generation, state before, state after.
-- Returns: the slot, when it was changed.
-- Locks: its row of lease_ring_slots.
-- Caller: repair.
UPDATE /*schema*/awa.lease_ring_slots SET state = $4::text
WHERE slot = $1::smallint AND generation = $2::bigint AND state = $3::text RETURNING slot
