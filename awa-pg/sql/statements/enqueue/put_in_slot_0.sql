-- Purpose: stores one job that is plain, as enqueue_at_once does, with no function around it: what a session has prepared costs half of
--   what PL/pgSQL prepares anew in every transaction. It locks the child before it reads where the ring stands, as the writer
--   protocol wants.
-- Parameters: queue; priority; kind; arguments; attempt budget; metadata or NULL; where the ring must stand; the present for tests.
-- Returns: one row, the job id and whether it has notified; no row when nothing was stored, and the functions are to do it: the ring
--   has turned, the lane does not exist or is not plain, the session has not been found at home yet, or the schema is
--   of a version that has its rows written otherwise (see ready_protocol).
-- Locks: ROW EXCLUSIVE on the child of ready_entries, also when nothing was written; those of wake_one.
-- Caller: Producer::enqueue.
-- per slot of: queue ring
WITH stored AS (
    INSERT INTO /*schema*/awa.ready_entries_0/*slot*/ (
        lane_id, xid, job_id, created_at, ready_slot, max_attempts, kind, args, metadata)
    SELECT l.lane_id, pg_catalog.pg_current_xact_id(), pg_catalog.nextval('/*schema*/awa.job_id_seq'),
           coalesce($8::timestamptz, pg_catalog.clock_timestamp()), 0/*slot*/, $5::smallint, $3::text, $4::json, $6::json
    FROM /*schema*/awa.queue_lanes AS l
    WHERE l.queue = $1::text AND l.priority = $2::smallint AND l.shard = 0
      AND (SELECT p.last_value FROM /*schema*/awa.queue_ring_pointer AS p) = $7::bigint
      AND pg_catalog.current_setting('awa.cluster', true) = /*schema*/awa.home_cluster()::text
      AND pg_catalog.pg_relation_size('/*schema*/awa.queue_settings') = 0
      AND /*schema*/awa.ready_protocol() = 1
    RETURNING job_id)
-- As in wake_one, which need not be called while nobody sleeps.
SELECT s.job_id,
       CASE WHEN pg_catalog.pg_try_advisory_lock(/*schema*/awa.wake_key(/*schema*/awa.wake_bucket($1)))
            THEN NOT pg_catalog.pg_advisory_unlock(/*schema*/awa.wake_key(/*schema*/awa.wake_bucket($1)))
            ELSE /*schema*/awa.wake_one(/*schema*/awa.wake_bucket($1), true) END AS has_notified
FROM stored AS s
