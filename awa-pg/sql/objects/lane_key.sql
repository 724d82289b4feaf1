-- Purpose: the advisory lock of a lane, different for each schema of one database. Whoever moves the cursor of a lane
--   holds it to the end of its transaction. It keeps claimers from working in vain; what makes a second claim
--   impossible is the unique index over (lane_id, seq).
-- Parameters: lane.
-- Returns: the key.
-- Locks: none.
-- Caller: claim_jobs, cancel_jobs, pass_tombstones.
CREATE OR REPLACE FUNCTION /*schema*/awa.lane_key(p_lane bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $awa$
    SELECT p_lane # hashtextextended('awa lane of ' || '/*schema*/awa', 0)
$awa$;
