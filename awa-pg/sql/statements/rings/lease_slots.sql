-- Purpose: the lease ring as rotation and pruning see it.
-- Parameters: present.
-- Returns: slot, generation, state, microseconds since it was opened (NULL: never), bytes of its child, pointer,
--   microseconds since it was sealed (NULL: it is not).
-- Locks: ACCESS SHARE on the control table.
-- Caller: rotate, prune, unpin.
SELECT s.slot, s.generation, s.state,
       (extract(epoch FROM coalesce($1::timestamptz, pg_catalog.clock_timestamp()) - s.opened_at) * 1000000)::bigint,
       CASE s.slot
       -- each lease slot:
       WHEN 0/*slot*/ THEN pg_catalog.pg_relation_size('/*schema*/awa.leases_0/*slot*/')
       -- end each
       END,
       (SELECT p.last_value FROM /*schema*/awa.lease_ring_pointer AS p),
       (extract(epoch FROM coalesce($1::timestamptz, pg_catalog.clock_timestamp()) - s.sealed_at) * 1000000)::bigint
FROM /*schema*/awa.lease_ring_slots AS s ORDER BY s.slot
