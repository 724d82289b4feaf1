-- Purpose: moves the cursors of all other slots behind everything in them, so that the slots can be drained and emptied
--   when their history is over. Nothing that waits is left in them.
-- Parameters: the slot that is spared.
-- Returns: how many cursors.
-- Locks: ROW EXCLUSIVE on ready_claim_attempt_batches.
-- Caller: repair, after move_rows.
WITH written AS (
    INSERT INTO /*schema*/awa.ready_claim_attempt_batches (lane_id, seq, ready_slot, seen)
    SELECT l.lane_id, coalesce(f.seq, 0) + 1, l.ready_slot, (e.behind || ':' || e.behind || ':')::pg_snapshot
    FROM (SELECT DISTINCT r.ready_slot, r.lane_id FROM /*schema*/awa.ready_entries AS r
          WHERE r.ready_slot <> $1::smallint) AS l
    CROSS JOIN (SELECT greatest(
                    (SELECT max(r.xid::text::bigint) FROM /*schema*/awa.ready_entries AS r),
                    (SELECT max(pg_snapshot_xmax(b.seen)::text::bigint)
                     FROM /*schema*/awa.ready_claim_attempt_batches AS b)) + 1 AS behind) AS e
    LEFT JOIN /*schema*/awa.lane_frontiers AS f ON f.ready_slot = l.ready_slot AND f.lane_id = l.lane_id
    RETURNING lane_id)
SELECT count(*) FROM written AS w
