-- Purpose: how many attempts of each queue are open or wait for a callback: claimed minus closed, without looking at single
--   jobs.
-- Columns: queue, state, jobs.
-- Parameters: none.
-- Returns: several rows per queue, to be summed up.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: the statement that estimates.
CREATE OR REPLACE VIEW /*schema*/awa.running_jobs AS
SELECT l.queue, 'running' AS state, r.jobs
FROM (SELECT b.lane_id, sum(b.members - coalesce(c.closed, 0))::bigint AS jobs
      FROM /*schema*/awa.lease_claim_batches AS b
      LEFT JOIN (
          SELECT m.batch_id, sum(m.closed) AS closed
          FROM (SELECT s.receipt >> 10 AS batch_id, 1 AS closed
                FROM /*schema*/awa.lease_claim_closure_batches AS s WHERE s.receipt IS NOT NULL
                UNION ALL
                SELECT lower(s.receipts) >> 10, upper(n.run) - lower(n.run)
                FROM /*schema*/awa.lease_claim_closure_batches AS s CROSS JOIN LATERAL unnest(s.receipts) AS n (run)
                WHERE s.receipts IS NOT NULL) AS m
          GROUP BY m.batch_id) AS c ON c.batch_id = b.batch_id
      GROUP BY b.lane_id) AS r
JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = r.lane_id
UNION ALL
SELECT l.queue, 'running' AS state, r.jobs
FROM (SELECT c.lane_id, count(*) AS jobs FROM /*schema*/awa.lease_claims AS c
      WHERE NOT EXISTS (SELECT FROM /*schema*/awa.lease_claim_closures AS d
                        WHERE d.claim_slot = c.claim_slot AND d.receipt_id = c.receipt_id)
      GROUP BY c.lane_id) AS r
JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = r.lane_id
UNION ALL
SELECT l.queue, CASE WHEN l.waiting_until IS NULL THEN 'running' ELSE 'waiting' END, count(*)
FROM /*schema*/awa.leases AS l GROUP BY l.queue, l.waiting_until IS NULL;
