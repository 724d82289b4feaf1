-- Purpose: the jobs behind members of claim batches of one slot.
-- Parameters: parallel arrays, one element per member: a tag of the caller's, lane and sequence of the attempt batch,
--   index in the batch from 1.
-- Returns: the tag and the ready row; lease and attempts are those before the claim.
-- Locks: ACCESS SHARE on the children of ready_entries and ready_claim_attempt_batches.
-- Caller: attempt_bodies.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.attempt_bodies_0/*slot*/(
    p_tags bigint[], p_lanes bigint[], p_seqs bigint[], p_indexes integer[])
RETURNS TABLE (tag bigint, job_id bigint, lane_id bigint, xid xid8, run_lease bigint, attempt smallint, max_attempts smallint,
    created_at timestamptz, kind text, args json, metadata json, last_error text)
LANGUAGE plpgsql STABLE AS $awa$
BEGIN
    RETURN QUERY
    SELECT m.tag, r.job_id, r.lane_id, r.xid, coalesce(r.run_lease, 0), coalesce(r.attempt, 0::smallint), r.max_attempts,
           r.created_at, r.kind, r.args, r.metadata, r.last_error
    FROM unnest(p_tags, p_lanes, p_seqs, p_indexes) AS m (tag, lane, seq, index)
    CROSS JOIN LATERAL (
        SELECT a.lane_id, a.first_xid, a.last_xid, a.job_id, a.job_ids, a.run_leases
        FROM /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ AS a WHERE a.lane_id = m.lane AND a.seq = m.seq LIMIT 1) AS b
    -- The first match behind the first row of the batch; without LIMIT the scan would go on to the end of the
    -- transaction, which may have appended millions.
    CROSS JOIN LATERAL (
        SELECT n.xid, n.job_id, n.lane_id, n.run_lease, n.attempt, n.max_attempts, n.created_at, n.kind, n.args, n.metadata,
               n.last_error
        FROM /*schema*/awa.ready_entries_0/*slot*/ AS n
        WHERE n.lane_id = b.lane_id AND (n.xid, n.job_id) >= (b.first_xid, coalesce(b.job_id, b.job_ids[1]))
          AND n.xid <= coalesce(b.last_xid, b.first_xid) AND n.job_id = coalesce(b.job_ids[m.index], b.job_id)
          AND coalesce(n.run_lease, 0) = coalesce(b.run_leases[m.index], 0)
        ORDER BY n.xid, n.job_id LIMIT 1) AS r;
END
$awa$;
