-- Purpose: how many leases are in a slot of the lease ring.
-- Parameters: slot.
-- Returns: the number.
-- Locks: ACCESS SHARE on leases.
-- Caller: prune.
SELECT pg_catalog.count(*) FROM /*schema*/awa.leases AS l WHERE l.lease_slot = $1::smallint
