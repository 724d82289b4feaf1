-- Purpose: takes the next rows of one lane in one slot, and appends the attempt batch that is the new cursor. The
--   caller holds the lane's lock.
-- Parameters: lane; the snapshot of the claim; at most so many rows; stop after the row that reaches so many bytes of
--   arguments.
-- Returns: members, 0 when nothing was there; the batch and the sequence of the cursor row; parallel arrays over the
--   members, in order. run_leases and attempts are NULL when all members are first appends. Whether it stopped at a limit:
--   the caller's, or 64 MB of arguments and metadata.
-- Locks: ROW EXCLUSIVE on the child of ready_claim_attempt_batches. A stale reader of the cursor gets a unique
--   violation from the chain's index.
-- Caller: claim_jobs, pass_tombstones_0.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.claim_lane_0/*slot*/(
    p_lane bigint, p_snapshot pg_snapshot, p_limit integer, p_max_bytes bigint,
    OUT members integer, OUT bytes bigint, OUT batch_id bigint, OUT seq bigint, OUT job_ids bigint[],
    OUT run_leases bigint[], OUT attempts smallint[], OUT max_attempts smallint[], OUT created_ats timestamptz[],
    OUT kinds text[], OUT args json[], OUT metadata json[], OUT is_full boolean)
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_cursor  record;
    -- What one row of the answer may hold together with its metadata; PostgreSQL cannot send more than 1 GB.
    c_weight  CONSTANT bigint := 67108864;
    v_has_dead boolean;
    v_weight  bigint := 0;
    v_is_small boolean;
    v_probe   record;
    v_part    record;
    v_xids    xid8[];
    v_next    record;
BEGIN
    SELECT b.seq, b.seen, b.part_xids, b.part_jobs,
           -- What no claim writes: nothing is emitted from a cursor that somebody changed by hand.
           pg_snapshot_xmax(b.seen) > pg_snapshot_xmax(p_snapshot)
               OR cardinality(b.part_xids) IS DISTINCT FROM cardinality(b.part_jobs)
               OR cardinality(b.run_leases) <> cardinality(coalesce(b.job_ids, ARRAY[b.job_id]))
               OR b.batch_id IS NOT NULL AND (b.first_xid IS NULL OR (b.job_id IS NULL) = (b.job_ids IS NULL))
               OR b.seq IS DISTINCT FROM 1 + coalesce((
                   SELECT n.seq FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS n
                   WHERE n.lane_id = p_lane AND n.seq < b.seq ORDER BY n.seq DESC LIMIT 1), 0) AS is_suspicious
    INTO v_cursor
    FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS b WHERE b.lane_id = p_lane ORDER BY b.seq DESC LIMIT 1;
    IF v_cursor.is_suspicious THEN
        PERFORM /*schema*/awa.assert_cursor(0/*slot*/::smallint, p_lane, v_cursor.seq);
    END IF;
    v_has_dead := pg_relation_size('/*schema*/awa.ready_tombstones_0/*slot*/') > 0;
    -- Small rows that fit are read in one go.
    SELECT count(*)::integer, coalesce(sum(e.length), 0), coalesce(sum(e.length + e.more_length), 0),
           bool_and(e.length + e.more_length <= 65536), array_agg(e.xid), array_agg(e.job_id),
           CASE WHEN count(e.run_lease) > 0 THEN array_agg(e.run_lease) END,
           CASE WHEN count(e.run_lease) > 0 THEN array_agg(e.attempt) END,
           array_agg(e.max_attempts), array_agg(e.created_at), array_agg(e.kind),
           array_agg(CASE WHEN e.length + e.more_length <= 65536 THEN e.args END),
           CASE WHEN count(e.metadata) > 0
                THEN array_agg(CASE WHEN e.length + e.more_length <= 65536 THEN e.metadata END) END
    INTO members, bytes, v_weight, v_is_small, v_xids, job_ids, run_leases, attempts, max_attempts, created_ats, kinds, args,
         metadata
    FROM (SELECT t.xid, t.job_id, t.run_lease, t.attempt, t.max_attempts, t.created_at, t.kind, t.args, t.metadata,
                 -- A text of which much is stored is not read to learn its length.
                 CASE WHEN pg_column_size(t.args) <= 2048 THEN octet_length(t.args::text) ELSE 65537 END AS length,
                 CASE WHEN t.metadata IS NULL THEN 0
                      WHEN pg_column_size(t.metadata) <= 2048 THEN octet_length(t.metadata::text)
                      ELSE 65537 END AS more_length
          FROM /*schema*/awa.frontier_probes(
              coalesce(v_cursor.seen, '1:1:'), v_cursor.part_xids, v_cursor.part_jobs, p_snapshot) AS p
          CROSS JOIN LATERAL (
              SELECT r.xid, r.job_id, r.run_lease, r.attempt, r.max_attempts, r.created_at, r.kind, r.args, r.metadata
              FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
              WHERE r.lane_id = p_lane AND (r.xid, r.job_id) > (p.lo, p.lo_job) AND r.xid < p.hi
                AND (NOT v_has_dead OR NOT /*schema*/awa.is_tombstoned_0/*slot*/(
                        p_lane, r.job_id, coalesce(r.run_lease, 0)))
              ORDER BY r.xid, r.job_id LIMIT p_limit) AS t
          LIMIT p_limit) AS e;
    IF NOT v_is_small OR bytes > p_max_bytes OR v_weight > c_weight THEN
        members := 0;
        bytes := 0;
        v_weight := 0;
        v_xids := NULL;
        job_ids := NULL;
        run_leases := NULL;
        attempts := NULL;
        max_attempts := NULL;
        created_ats := NULL;
        kinds := NULL;
        args := NULL;
        metadata := NULL;
        FOR v_probe IN
            SELECT p.lo, p.lo_job, p.hi
            FROM /*schema*/awa.frontier_probes(
                coalesce(v_cursor.seen, '1:1:'), v_cursor.part_xids, v_cursor.part_jobs, p_snapshot) AS p
        LOOP
            -- The lengths are summed before anything large is read, so that a batch stops at the row that reaches a limit.
            -- What is stored of a text is at most 4 bytes longer than the text, and is known without reading it: rows
            -- behind the one that reaches a limit even so are not read to learn their length.
            SELECT count(*)::integer AS members, max(e.args_total) AS bytes, max(e.total) AS weight,
                   array_agg(e.xid) AS xids, array_agg(e.job_id) AS job_ids, array_agg(e.run_lease) AS run_leases,
                   array_agg(e.attempt) AS attempts, array_agg(e.max_attempts) AS max_attempts,
                   array_agg(e.created_at) AS created_ats, array_agg(e.kind) AS kinds, array_agg(e.args) AS args,
                   array_agg(e.metadata) AS metadata
            INTO v_part
            FROM (SELECT t.xid, t.job_id, t.run_lease, t.attempt, t.max_attempts, t.created_at, t.kind, t.args, t.metadata,
                         t.length, t.more_length, sum(t.length) OVER up_to AS args_total,
                         sum(t.length + t.more_length) OVER up_to AS total
                  FROM (SELECT s.xid, s.job_id, s.run_lease, s.attempt, s.max_attempts, s.created_at, s.kind, s.args,
                               s.metadata, octet_length(s.args::text) AS length,
                               coalesce(octet_length(s.metadata::text), 0) AS more_length
                        FROM (SELECT n.xid, n.job_id, n.run_lease, n.attempt, n.max_attempts, n.created_at, n.kind, n.args,
                                     n.metadata, sum(n.stored) OVER up_to - n.stored AS stored_before,
                                     sum(n.stored + n.more_stored) OVER up_to - n.stored - n.more_stored AS weight_before
                              FROM (SELECT r.xid, r.job_id, r.run_lease, r.attempt, r.max_attempts, r.created_at, r.kind,
                                           r.args, r.metadata, pg_column_size(r.args) - 4 AS stored,
                                           coalesce(pg_column_size(r.metadata) - 4, 0) AS more_stored
                                    FROM /*schema*/awa.ready_entries_0/*slot*/ AS r
                                    WHERE r.lane_id = p_lane AND (r.xid, r.job_id) > (v_probe.lo, v_probe.lo_job)
                                      AND r.xid < v_probe.hi
                                      AND (NOT v_has_dead OR NOT /*schema*/awa.is_tombstoned_0/*slot*/(
                                              p_lane, r.job_id, coalesce(r.run_lease, 0)))
                                    ORDER BY r.xid, r.job_id LIMIT p_limit - members) AS n
                              WINDOW up_to AS (ORDER BY n.xid, n.job_id ROWS UNBOUNDED PRECEDING)) AS s
                        WHERE s.stored_before < p_max_bytes - bytes AND s.weight_before < c_weight - v_weight
                        OFFSET 0) AS t
                  WINDOW up_to AS (ORDER BY t.xid, t.job_id ROWS UNBOUNDED PRECEDING)) AS e
            WHERE e.args_total - e.length < p_max_bytes - bytes
              AND e.total - e.length - e.more_length < c_weight - v_weight;
            CONTINUE WHEN v_part.members = 0;
            members := members + v_part.members;
            bytes := bytes + v_part.bytes;
            v_weight := v_weight + v_part.weight;
            v_xids := v_xids || v_part.xids;
            job_ids := job_ids || v_part.job_ids;
            run_leases := run_leases || v_part.run_leases;
            attempts := attempts || v_part.attempts;
            max_attempts := max_attempts || v_part.max_attempts;
            created_ats := created_ats || v_part.created_ats;
            kinds := kinds || v_part.kinds;
            args := args || v_part.args;
            metadata := metadata || v_part.metadata;
            EXIT WHEN members >= p_limit OR bytes >= p_max_bytes OR v_weight >= c_weight;
        END LOOP;
        IF array_remove(run_leases, NULL) = '{}' THEN
            run_leases := NULL;
            attempts := NULL;
        END IF;
        IF array_remove(ARRAY(SELECT m::text FROM unnest(metadata) AS m), NULL) = '{}' THEN
            metadata := NULL;
        END IF;
    END IF;
    is_full := members >= p_limit OR bytes >= p_max_bytes OR v_weight >= c_weight;
    IF members = 0 AND NOT v_has_dead THEN
        RETURN;
    END IF;
    v_next := /*schema*/awa.frontier_after(
        coalesce(v_cursor.seen, '1:1:'), v_cursor.part_xids, v_cursor.part_jobs, p_snapshot,
        CASE WHEN is_full THEN v_xids[members] END, CASE WHEN is_full THEN job_ids[members] END);
    seq := coalesce(v_cursor.seq, 0) + 1;
    IF members > 0 THEN
        batch_id := nextval('/*schema*/awa.batch_id_seq');
    END IF;
    INSERT INTO /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ (
        lane_id, seq, batch_id, first_xid, last_xid, job_id, ready_slot, seen, part_xids, part_jobs, job_ids, run_leases)
    VALUES (p_lane, seq, batch_id, v_xids[1], nullif(v_xids[members], v_xids[1]),
        CASE WHEN members = 1 THEN job_ids[1] END, 0/*slot*/, v_next.seen, v_next.part_xids, v_next.part_jobs,
        CASE WHEN members > 1 THEN job_ids END, run_leases);
END
$awa$;
