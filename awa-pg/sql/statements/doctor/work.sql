-- Purpose: what waits for a worker or for an operator.
-- Parameters: present.
-- Returns: dead jobs; deferred jobs that are due, and for how many microseconds the first of them has been; hints of lanes
--   that nobody has folded; microseconds since maintenance last looked at the rings (NULL: never); jobs that were carried
--   over; leases; rows of ready_claim_attempt_batches that open claims or completions name and that are not there.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: doctor.
SELECT (SELECT count(*) FROM /*schema*/awa.dlq_entries), count(d.job_id),
       coalesce((extract(epoch FROM n.now - min(d.run_at))
                 * 1000000)::bigint, 0),
       (SELECT count(*) FROM /*schema*/awa.lane_hints),
       (SELECT (extract(epoch FROM n.now) * 1000000)::bigint
               - CASE WHEN t.last_value <> 0 THEN t.last_value END
        FROM /*schema*/awa.tick_rings AS t),
       (SELECT count(*) FROM /*schema*/awa.carried_entries),
       (SELECT count(*) FROM /*schema*/awa.leases),
       -- Open claims and completions keep the slot of their cursor row, so that it cannot be gone with its slot.
       (SELECT count(*)
        FROM (SELECT o.ready_slot, o.lane_id, o.attempt_seq FROM /*schema*/awa.open_claims AS o WHERE NOT isempty(o.open)
              UNION
              SELECT c.ready_slot, c.lane_id, c.attempt_seq FROM /*schema*/awa.receipt_completion_batches AS c) AS m
        WHERE NOT EXISTS (SELECT FROM /*schema*/awa.ready_claim_attempt_batches AS b
                          WHERE b.ready_slot = m.ready_slot AND b.lane_id = m.lane_id AND b.seq = m.attempt_seq))
FROM (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) AS n
LEFT JOIN /*schema*/awa.deferred_jobs AS d ON d.run_at <= n.now
GROUP BY n.now
