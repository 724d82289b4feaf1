-- Purpose: appends ready rows to one slot, whose child the caller has locked by enter_ready_slot.
-- Parameters: parallel arrays, one element per job, in the order in which the jobs are to run: id, lane, kind (one
--   element alone serves all), args, attempt budget (likewise), and, or NULL for all: metadata, when it was first
--   enqueued, attempts so far, lease so far, last error; the present.
-- Returns: nothing.
-- Locks: none beyond the child's.
-- Caller: append_ready.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.append_ready_to_0/*slot*/(
    p_jobs bigint[], p_lanes bigint[], p_kinds text[], p_args json[], p_max_attempts smallint[], p_metadata json[],
    p_created timestamptz[], p_attempts smallint[], p_leases bigint[], p_errors text[], p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    INSERT INTO /*schema*/awa.ready_entries_0/*slot*/ (
        lane_id, xid, job_id, created_at, ready_slot, max_attempts, attempt, run_lease, kind, args, metadata, last_error)
    SELECT coalesce(j.lane, p_lanes[1]), pg_current_xact_id(), j.job, coalesce(j.created, p_now), 0/*slot*/,
           coalesce(j.max_attempts, p_max_attempts[1]), j.attempt, j.lease, coalesce(j.kind, p_kinds[1]), j.args,
           j.metadata, j.error
    FROM unnest(p_jobs, p_lanes, p_kinds, p_args, p_max_attempts, p_metadata, p_created, p_attempts, p_leases, p_errors)
        AS j (job, lane, kind, args, max_attempts, metadata, created, attempt, lease, error);
END
$awa$;
