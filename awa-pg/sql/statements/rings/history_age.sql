-- Purpose: how long ago the youngest completed and the youngest cancelled job in the history of a slot of the queue ring ended.
-- Parameters: slot, present.
-- Returns: microseconds for each, NULL where the slot has none.
-- Locks: ACCESS SHARE on the slot's children and the parents.
-- Caller: prune.
SELECT (extract(epoch FROM n.now - greatest(
            (SELECT pg_catalog.max(c.completed_at) FROM /*schema*/awa.receipt_completion_batches AS c
             WHERE c.ready_slot = $1::smallint),
            d.completed_at)) * 1000000)::bigint,
       (extract(epoch FROM n.now - greatest(
            (SELECT pg_catalog.max(t.cancelled_at) FROM /*schema*/awa.ready_tombstones AS t
             WHERE t.ready_slot = $1::smallint AND t.moved_at IS NULL),
            d.cancelled_at)) * 1000000)::bigint
FROM (SELECT coalesce($2::timestamptz, pg_catalog.clock_timestamp()) AS now) AS n
CROSS JOIN (SELECT pg_catalog.max(e.finalized_at) FILTER (WHERE e.state = 'completed') AS completed_at,
                   pg_catalog.max(e.finalized_at) FILTER (WHERE e.state = 'cancelled') AS cancelled_at
            FROM /*schema*/awa.done_entries AS e WHERE e.done_slot = $1::smallint) AS d
