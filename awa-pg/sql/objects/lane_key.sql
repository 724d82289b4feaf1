-- Purpose: the advisory lock of a lane, different for each schema of one database. Whoever moves the cursor of a lane
--   holds it to the end of its transaction. It keeps claimers from working in vain; what makes a second claim
--   impossible is the unique index over (lane_id, seq).
-- Parameters: lane.
-- Returns: the key.
-- Locks: none.
-- Caller: claim_jobs, cancel_in_ring, cancel_carried, carry_slot, pass_tombstones_0.
CREATE OR REPLACE FUNCTION /*schema*/awa.lane_key(p_lane bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $awa$
    SELECT p_lane OPERATOR(pg_catalog.#)
        pg_catalog.hashtextextended('awa lane of ' OPERATOR(pg_catalog.||) '/*schema*/awa', 0)
$awa$;
