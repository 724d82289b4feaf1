-- Purpose: takes the first rows of one lane that were carried over. Each becomes a lease, because no ready row is left
--   behind it. First are those with the first places among the 1,023 that have been there for longest: rows are found in the
--   order in which they came, behind all that are gone for good (see raise_carried_floor). The caller holds the lane's lock.
-- Parameters: lane; at most so many rows; stop after the row that reaches so many bytes of arguments; claiming instance;
--   nonce; time of the claim; deadline or NULL.
-- Returns: as claim_lane_0, without the cursor: members, 0 when nothing was there; bytes of arguments; the batch; parallel
--   arrays over the members, in order. Whether it stopped at a limit while rows were left: the caller's, or 64 MB of
--   arguments and metadata.
-- Locks: the rows of carried_entries; ROW EXCLUSIVE on one child of leases.
-- Caller: claim_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.claim_carried(
    p_lane bigint, p_limit integer, p_max_bytes bigint, p_instance bigint, p_nonce bigint, p_now timestamptz,
    p_deadline timestamptz,
    OUT members integer, OUT bytes bigint, OUT batch_id bigint, OUT job_ids bigint[], OUT run_leases bigint[],
    OUT attempts smallint[], OUT max_attempts smallint[], OUT created_ats timestamptz[], OUT kinds text[], OUT args json[],
    OUT metadata json[], OUT is_full boolean)
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_xids   xid8[];
    v_errors text[];
    v_slot   smallint;
    v_floor  xid8 := /*schema*/awa.carried_floor();
    -- As in claim_lane_0.
    c_weight CONSTANT bigint := 67108864;
BEGIN
    WITH head AS (
        SELECT f.xid, f.job_id, sum(f.size) OVER (ORDER BY f.xid, f.job_id) - f.size AS before,
               sum(f.weight) OVER (ORDER BY f.xid, f.job_id) - f.weight AS weight_before
        FROM (SELECT s.xid, s.job_id, octet_length(s.args::text) AS size,
                     octet_length(s.args::text) + coalesce(octet_length(s.metadata::text), 0) AS weight
              -- As in claim_lane_0: rows that cannot be among the taken by what is stored of them are not read.
              FROM (SELECT n.xid, n.job_id, n.args, n.metadata,
                           sum(n.stored) OVER (ORDER BY n.xid, n.job_id) - n.stored AS stored_before
                    FROM (SELECT o.xid, o.job_id, r.args, r.metadata, r.stored
                          FROM (SELECT w.moved_xid, w.xid, w.job_id
                                FROM (SELECT c.moved_xid, c.xid, c.job_id FROM /*schema*/awa.carried_entries AS c
                                      WHERE c.lane_id = p_lane AND c.moved_xid >= v_floor
                                      ORDER BY c.moved_xid, c.xid, c.job_id LIMIT 1023) AS w
                                ORDER BY w.xid, w.job_id LIMIT p_limit) AS o
                          -- Row by row: a join might walk over all that is gone.
                          CROSS JOIN LATERAL (
                              SELECT c.args, c.metadata, pg_column_size(c.args) - 4 AS stored
                              FROM /*schema*/awa.carried_entries AS c
                              WHERE c.lane_id = p_lane AND c.moved_xid = o.moved_xid AND c.xid = o.xid
                                AND c.job_id = o.job_id OFFSET 0) AS r) AS n) AS s
              WHERE s.stored_before < least(p_max_bytes, c_weight)) AS f
    ), taken AS (
        DELETE FROM /*schema*/awa.carried_entries AS c USING head AS h
        WHERE c.lane_id = p_lane AND c.xid = h.xid AND c.job_id = h.job_id AND h.before < p_max_bytes
          AND h.weight_before < c_weight
        RETURNING c.xid, c.job_id, c.created_at, c.run_lease, c.attempt, c.max_attempts, c.kind, c.args, c.metadata,
                  c.last_error
    )
    SELECT count(*), sum(octet_length(t.args::text)), array_agg(t.xid ORDER BY t.xid, t.job_id),
           array_agg(t.job_id ORDER BY t.xid, t.job_id), array_agg(t.run_lease ORDER BY t.xid, t.job_id),
           array_agg(t.attempt ORDER BY t.xid, t.job_id), array_agg(t.max_attempts ORDER BY t.xid, t.job_id),
           array_agg(t.created_at ORDER BY t.xid, t.job_id), array_agg(t.kind ORDER BY t.xid, t.job_id),
           array_agg(t.args ORDER BY t.xid, t.job_id), array_agg(t.metadata ORDER BY t.xid, t.job_id),
           array_agg(t.last_error ORDER BY t.xid, t.job_id)
    INTO members, bytes, v_xids, job_ids, run_leases, attempts, max_attempts, created_ats, kinds, args, metadata, v_errors
    FROM taken AS t;
    is_full := members > 0
        AND EXISTS (SELECT FROM /*schema*/awa.carried_entries AS c WHERE c.lane_id = p_lane AND c.moved_xid >= v_floor);
    IF members = 0 THEN
        RETURN;
    END IF;
    batch_id := nextval('/*schema*/awa.batch_id_seq');
    v_slot := /*schema*/awa.enter_lease_slot();
    INSERT INTO /*schema*/awa.leases (
        receipt_id, nonce, job_id, run_lease, lane_id, xid, instance_id, created_at, claimed_at, deadline_at, claim_slot,
        lease_slot, priority, shard, attempt, max_attempts, queue, kind, args, metadata, last_error)
    SELECT (batch_id << 10) + t.o, p_nonce, t.job, t.lease + 1, p_lane, t.xid, p_instance, t.created, p_now, p_deadline,
           255, v_slot, l.priority, l.shard, t.attempt + 1, t.max_attempts, l.queue, t.kind, t.args, t.metadata, t.error
    FROM /*schema*/awa.queue_lanes AS l,
         unnest(v_xids, job_ids, run_leases, attempts, max_attempts, created_ats, kinds, claim_carried.args,
                claim_carried.metadata, v_errors) WITH ORDINALITY
             AS t (xid, job, lease, attempt, max_attempts, created, kind, args, metadata, error, o)
    WHERE l.lane_id = p_lane;
END
$awa$;
