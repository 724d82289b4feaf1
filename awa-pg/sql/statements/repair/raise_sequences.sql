-- Purpose: raises the sequences of ids above everything stored. Logical replication carries no sequences.
-- Parameters: none.
-- Returns: whether the job ids were raised, and the batch ids.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: repair.
SELECT CASE WHEN j.newest > s.last_value OR j.newest = s.last_value AND NOT s.is_called
            THEN setval('/*schema*/awa.job_id_seq', j.newest) IS NOT NULL ELSE false END,
       CASE WHEN b.newest > t.last_value OR b.newest = t.last_value AND NOT t.is_called
            THEN setval('/*schema*/awa.batch_id_seq', b.newest) IS NOT NULL ELSE false END
FROM (SELECT greatest((SELECT max(r.job_id) FROM /*schema*/awa.ready_entries AS r),
                      (SELECT max(d.job_id) FROM /*schema*/awa.deferred_jobs AS d),
                      (SELECT max(q.job_id) FROM /*schema*/awa.dlq_entries AS q),
                      (SELECT max(d.job_id) FROM /*schema*/awa.done_entries AS d),
                      (SELECT max(l.job_id) FROM /*schema*/awa.lease_claims AS l),
                      (SELECT max(c.job_id) FROM /*schema*/awa.carried_entries AS c),
                      (SELECT max(l.job_id) FROM /*schema*/awa.leases AS l)) AS newest) AS j
CROSS JOIN (SELECT greatest((SELECT max(a.batch_id) FROM /*schema*/awa.ready_claim_attempt_batches AS a),
                            (SELECT max(c.batch_id) FROM /*schema*/awa.lease_claim_batches AS c),
                            (SELECT max(l.receipt_id >> 10) FROM /*schema*/awa.lease_claims AS l),
                            (SELECT max(l.receipt_id >> 10) FROM /*schema*/awa.leases AS l),
                            (SELECT max(s.after_batch) FROM /*schema*/awa.claim_ring_slots AS s)) AS newest) AS b
CROSS JOIN /*schema*/awa.job_id_seq AS s
CROSS JOIN /*schema*/awa.batch_id_seq AS t
