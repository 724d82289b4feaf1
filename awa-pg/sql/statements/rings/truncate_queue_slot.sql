-- Purpose: reclaims a slot of the queue ring.
-- Parameters: slot; how long failed jobs are kept, in microseconds; the bytes of them that are carried forward; the present.
-- Returns: how many failed jobs were carried forward.
-- Locks: as truncate_queue_slot.
-- Caller: prune.
SELECT /*schema*/awa.truncate_queue_slot($1::smallint, $2::bigint, $3::bigint, $4::timestamptz)
