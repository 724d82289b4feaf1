-- Purpose: assert_cursor for several lanes of one slot.
-- Parameters: slot; parallel arrays: lane, sequence of its cursor. NULL for none.
-- Returns: nothing.
-- Locks: as assert_cursor.
-- Caller: claim_jobs, unpassed_lanes_0.
CREATE OR REPLACE FUNCTION /*schema*/awa.assert_cursors(p_slot smallint, p_lanes bigint[], p_seqs bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    PERFORM /*schema*/awa.assert_cursor(p_slot, d.lane, d.seq) FROM unnest(p_lanes, p_seqs) AS d (lane, seq);
END
$awa$;
