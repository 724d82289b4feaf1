-- Purpose: how long ago the youngest job in the history of a slot of the queue ring ended.
-- Parameters: slot, present.
-- Returns: microseconds, NULL when the slot has no history.
-- Locks: ACCESS SHARE on the slot's children and the parents.
-- Caller: prune.
SELECT (extract(epoch FROM coalesce($2::timestamptz, pg_catalog.clock_timestamp()) - greatest(
    (SELECT pg_catalog.max(c.completed_at) FROM /*schema*/awa.receipt_completion_batches AS c
     WHERE c.ready_slot = $1::smallint),
    (SELECT pg_catalog.max(d.finalized_at) FROM /*schema*/awa.done_entries AS d WHERE d.done_slot = $1::smallint),
    (SELECT pg_catalog.max(t.cancelled_at) FROM /*schema*/awa.ready_tombstones AS t
     WHERE t.ready_slot = $1::smallint AND t.moved_at IS NULL))) * 1000000)::bigint
