-- Purpose: locks the control row of a slot of the lease ring, if it is in this state and nobody else holds it.
-- Parameters: slot, generation, state.
-- Returns: the slot, when it was locked.
-- Locks: its row of lease_ring_slots, only tried.
-- Caller: prune.
SELECT s.slot FROM /*schema*/awa.lease_ring_slots AS s
WHERE s.slot = $1::smallint AND s.generation = $2::bigint AND s.state = $3::text FOR UPDATE SKIP LOCKED
