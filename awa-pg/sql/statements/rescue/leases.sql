-- Purpose: leases that may have to be rescued: without a sign of life, of an instance that withdrew, or past their
--   deadline; and parked ones whose time has run out. Who decides is the caller, by what is returned. Leases that somebody is ending or moving are passed over.
-- Parameters: staleness in microseconds, limit, present.
-- Returns: receipt, claim slot, nonce, time of the claim, last beat of the instance (NULL: nothing is known of it), whether
--   it has withdrawn since, deadline, the present, job, lease, number of the attempt, attempt budget, queue, last
--   sign of life of the attempt itself, whether it is parked, and the staleness time that the instance asked for.
-- Locks: the rows returned, only tried.
-- Caller: rescue.
SELECT l.receipt_id, l.claim_slot, l.nonce, l.claimed_at, i.last_beat, coalesce(i.retired_at >= l.claimed_at, false),
       l.deadline_at, n.now, l.job_id, l.run_lease, l.attempt::integer, l.max_attempts, l.queue,
       s.heartbeat_at, l.waiting_until IS NOT NULL, i.staleness_us
FROM /*schema*/awa.leases AS l
CROSS JOIN (SELECT coalesce($3::timestamptz, pg_catalog.clock_timestamp()) AS now) AS n
LEFT JOIN /*schema*/awa.runtime_instances AS i ON i.instance_id = l.instance_id
LEFT JOIN /*schema*/awa.attempt_state AS s ON s.job_id = l.job_id AND s.run_lease = l.run_lease
WHERE CASE WHEN l.waiting_until IS NOT NULL THEN l.waiting_until <= n.now
           ELSE greatest(l.claimed_at, i.last_beat, s.heartbeat_at) <= n.now - greatest($1::bigint, i.staleness_us) * interval '1 microsecond'
             OR i.retired_at >= l.claimed_at OR l.deadline_at <= n.now END
ORDER BY l.receipt_id LIMIT $2::bigint FOR UPDATE OF l SKIP LOCKED
