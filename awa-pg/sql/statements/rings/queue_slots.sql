-- Purpose: the queue ring as rotation, draining and pruning see it.
-- Parameters: present.
-- Returns: slot, generation, state, microseconds since it was opened (NULL: never), bytes of its children, pointer,
--   microseconds since it was sealed (NULL: it is not), whether its lanes have been noted.
-- Locks: ACCESS SHARE on the control table.
-- Caller: rotate, drain, prune.
SELECT s.slot, s.generation, s.state,
       (extract(epoch FROM coalesce($1::timestamptz, pg_catalog.clock_timestamp()) - s.opened_at) * 1000000)::bigint,
       /*schema*/awa.queue_slot_bytes(s.slot),
       (SELECT p.last_value FROM /*schema*/awa.queue_ring_pointer AS p),
       (extract(epoch FROM coalesce($1::timestamptz, pg_catalog.clock_timestamp()) - s.sealed_at) * 1000000)::bigint,
       s.has_noted_lanes
FROM /*schema*/awa.queue_ring_slots AS s ORDER BY s.slot
