-- Purpose: the jobs behind members of claim batches of one slot; see attempt_bodies_0.
-- Parameters: the slot of the ready rows; the rest as attempt_bodies_0.
-- Returns: as attempt_bodies_0.
-- Locks: as attempt_bodies_0.
-- Caller: route_ended, materialize_attempts.
CREATE OR REPLACE FUNCTION /*schema*/awa.attempt_bodies(
    p_ready_slot smallint, p_tags bigint[], p_lanes bigint[], p_seqs bigint[], p_indexes integer[])
RETURNS TABLE (tag bigint, job_id bigint, lane_id bigint, xid xid8, run_lease bigint, attempt smallint, max_attempts smallint,
    created_at timestamptz, kind text, args json, metadata json, last_error text)
LANGUAGE plpgsql STABLE AS $awa$
BEGIN
    CASE p_ready_slot
    -- each queue slot:
    WHEN 0/*slot*/ THEN
        RETURN QUERY SELECT c.tag, c.job_id, c.lane_id, c.xid, c.run_lease, c.attempt, c.max_attempts, c.created_at, c.kind,
            c.args, c.metadata, c.last_error
        FROM /*schema*/awa.attempt_bodies_0/*slot*/(p_tags, p_lanes, p_seqs, p_indexes) AS c;
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', p_ready_slot, true);
    END CASE;
END
$awa$;
