-- Purpose: whether a ready row was cancelled before it was claimed. A function of its own, so that claims in a slot without
--   tombstones do not lock their table.
-- Parameters: lane, job, lease of the ready row.
-- Returns: whether there is a tombstone for exactly this row.
-- Locks: ACCESS SHARE on the child of ready_tombstones.
-- Caller: claim_lane_0.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.is_tombstoned_0/*slot*/(p_lane bigint, p_job bigint, p_lease bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $awa$
BEGIN
    RETURN EXISTS (SELECT FROM /*schema*/awa.ready_tombstones_0/*slot*/ AS t
                   WHERE t.lane_id = p_lane AND t.job_id = p_job AND t.run_lease = p_lease);
END
$awa$;
