-- Purpose: what rescue must know of open attempts to decide where their jobs go.
-- Parameters: receipts.
-- Returns: receipt, job, lease, number of the attempt, attempt budget, queue; no row for attempts that are not open.
-- Locks: ACCESS SHARE on the claim ring, attempt batches and ready rows.
-- Caller: rescue.
SELECT e.receipt_id, r.job_id, e.row_lease + 1, (coalesce(r.attempt, 0) + 1)::integer, r.max_attempts, l.queue
FROM /*schema*/awa.open_claims AS o
JOIN /*schema*/awa.emitted_attempts AS e
    ON e.ready_slot = o.ready_slot AND e.lane_id = o.lane_id AND e.seq = o.attempt_seq AND o.open @> e.receipt_id
JOIN /*schema*/awa.ready_entries AS r
    ON r.ready_slot = e.ready_slot AND r.lane_id = e.lane_id AND r.xid >= e.first_xid AND r.xid <= e.last_xid
   AND r.job_id = e.job_id
   AND coalesce(r.run_lease, 0) = e.row_lease
JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = r.lane_id
WHERE o.batch_id = ANY (ARRAY(SELECT DISTINCT w >> 10 FROM unnest($1::bigint[]) AS w))
  AND e.receipt_id = ANY ($1::bigint[])
