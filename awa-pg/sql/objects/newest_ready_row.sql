-- Purpose: the newest ready row of a job in the ring: what its last life in the ring began with.
-- Parameters: id.
-- Returns: slot, lane, transaction and lease of the row; NULLs when the ring has none.
-- Locks: ACCESS SHARE on ready_entries.
-- Caller: look_for_job, cancel_in_ring, hide_finished, move_in_ring, settle_buried.
CREATE OR REPLACE FUNCTION /*schema*/awa.newest_ready_row(
    p_job bigint, OUT ready_slot smallint, OUT lane_id bigint, OUT xid xid8, OUT run_lease bigint)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $awa$
BEGIN
    -- Two looks, because first and later rows are in different indexes.
    SELECT f.ready_slot, f.lane_id, f.xid, f.run_lease INTO ready_slot, lane_id, xid, run_lease
    FROM (SELECT r.ready_slot, r.lane_id, r.xid, 0 AS run_lease FROM /*schema*/awa.ready_entries AS r
          WHERE r.job_id = p_job AND r.run_lease IS NULL
          UNION ALL
          SELECT r.ready_slot, r.lane_id, r.xid, r.run_lease FROM /*schema*/awa.ready_entries AS r
          WHERE r.job_id = p_job AND r.run_lease IS NOT NULL) AS f
    ORDER BY f.run_lease DESC LIMIT 1;
END
$awa$;
