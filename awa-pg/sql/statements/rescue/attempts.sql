-- Purpose: what rescue must know of open attempts to decide where their jobs go.
-- Parameters: receipts.
-- Returns: receipt, job, lease, number of the attempt, attempt budget, queue; no row for attempts that are not open.
-- Locks: ACCESS SHARE on the claim ring, attempt batches and ready rows.
-- Caller: rescue.
SELECT e.receipt_id, r.job_id, e.row_lease + 1, (coalesce(r.attempt, 0) + 1)::integer, r.max_attempts, l.queue
FROM (SELECT c.ready_slot, c.lane_id, c.attempt_seq, c.open FROM /*schema*/awa.open_compact_claims AS c
      WHERE c.batch_id = ANY (ARRAY(SELECT DISTINCT w >> 10 FROM pg_catalog.unnest($1::bigint[]) AS w))
      UNION ALL
      SELECT l.ready_slot, l.lane_id, l.attempt_seq, int8multirange(int8range(l.receipt_id, l.receipt_id + 1))
      FROM /*schema*/awa.open_row_claims AS l WHERE l.receipt_id = ANY ($1::bigint[])) AS o
JOIN /*schema*/awa.emitted_attempts AS e
    ON e.ready_slot = o.ready_slot AND e.lane_id = o.lane_id AND e.seq = o.attempt_seq
   AND o.open OPERATOR(pg_catalog.@>) e.receipt_id
-- The first match behind the first row of the batch; without LIMIT the scan would go on to the end of the transaction.
CROSS JOIN LATERAL (
    SELECT n.job_id, n.attempt, n.max_attempts, n.lane_id FROM /*schema*/awa.ready_entries AS n
    WHERE n.ready_slot = e.ready_slot AND n.lane_id = e.lane_id
      AND (n.xid, n.job_id) >= (e.first_xid, e.first_job) AND n.xid <= e.last_xid AND n.job_id = e.job_id
      AND coalesce(n.run_lease, 0) = e.row_lease
    ORDER BY n.xid, n.job_id LIMIT 1) AS r
JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = r.lane_id
WHERE e.receipt_id = ANY ($1::bigint[])
