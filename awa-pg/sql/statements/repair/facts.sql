-- Purpose: whether the numbers in the schema are those of this cluster. Numbers matter of rows that wait, of the places of
--   jobs outside the rings, and of cursors in slots that may take new rows; those in slots that are only history do not.
-- Parameters: none.
-- Returns: whether the schema was carried here from another cluster; whether a number that matters is not handed out yet;
--   how many numbers the waiting rows need to keep their order; how many this cluster has handed out that nobody uses
--   any more.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: repair.
SELECT /*schema*/awa.is_foreign(),
       EXISTS (SELECT FROM /*schema*/awa.waiting_rows AS w WHERE w.xid >= pg_catalog.pg_snapshot_xmin(n.now))
       OR EXISTS (SELECT FROM /*schema*/awa.carried_entries AS c
                 WHERE greatest(c.xid::text::bigint, c.moved_xid::text::bigint)
                       >= pg_catalog.pg_snapshot_xmin(n.now)::text::bigint)
       OR EXISTS (SELECT FROM /*schema*/awa.leases AS l WHERE l.xid >= pg_catalog.pg_snapshot_xmin(n.now))
       OR EXISTS (
           SELECT FROM /*schema*/awa.ready_claim_attempt_batches AS b
           JOIN /*schema*/awa.queue_ring_slots AS s ON s.slot = b.ready_slot
           WHERE pg_catalog.pg_snapshot_xmax(b.seen) > pg_catalog.pg_snapshot_xmax(n.now)
             AND (s.state IN ('open', 'free')
                  OR s.slot = ((SELECT p.last_value FROM /*schema*/awa.queue_ring_pointer AS p) & 63))),
       (SELECT coalesce(pg_catalog.max(w.run) + 1, 0) FROM /*schema*/awa.waiting_rows AS w)
       + (SELECT coalesce(pg_catalog.max(c.run) + 1, 0) FROM /*schema*/awa.carried_runs AS c),
       pg_catalog.pg_snapshot_xmin(n.now)::text::bigint - 3
FROM (SELECT pg_catalog.pg_current_snapshot() AS now) AS n
