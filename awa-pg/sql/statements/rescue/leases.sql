-- Purpose: leases that may have to be rescued: without a sign of life, of an instance that withdrew, or past their
--   deadline. Who decides is the caller, by what is returned. Leases that somebody is ending or moving are passed over.
-- Parameters: staleness in microseconds, limit, present.
-- Returns: receipt, claim slot, nonce, time of the claim, last beat of the instance (NULL: nothing is known of it), whether
--   it has withdrawn since, deadline, the present, job, lease, number of the attempt, attempt budget, queue.
-- Locks: the rows returned, only tried.
-- Caller: rescue.
SELECT l.receipt_id, l.claim_slot, l.nonce, l.claimed_at, i.last_beat, coalesce(i.retired_at >= l.claimed_at, false),
       l.deadline_at, n.now, l.job_id, l.run_lease, l.attempt::integer, l.max_attempts, l.queue
FROM /*schema*/awa.leases AS l
CROSS JOIN (SELECT coalesce($3::timestamptz, pg_catalog.clock_timestamp()) AS now) AS n
LEFT JOIN /*schema*/awa.runtime_instances AS i ON i.instance_id = l.instance_id
WHERE greatest(l.claimed_at, i.last_beat) <= n.now - $1::bigint * interval '1 microsecond'
   OR i.retired_at >= l.claimed_at OR l.deadline_at <= n.now
ORDER BY l.receipt_id LIMIT $2::bigint FOR UPDATE OF l SKIP LOCKED
