-- Purpose: which lanes of a slot have rows that wait at this moment, and how many; see waiting_lanes_0.
-- Parameters: the slot; stop counting at so many rows.
-- Returns: a row per lane.
-- Locks: as waiting_lanes_0.
-- Caller: Maintainer::unpin, carry_slot, Operator::counts.
CREATE OR REPLACE FUNCTION /*schema*/awa.waiting_lanes(p_slot smallint, p_limit bigint)
RETURNS TABLE (lane_id bigint, waiting bigint)
LANGUAGE plpgsql VOLATILE SET jit = off SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off AS $awa$
DECLARE
    v_snapshot pg_snapshot := /*schema*/awa.own_snapshot();
BEGIN
    CASE p_slot
    -- each queue slot:
    WHEN 0/*slot*/ THEN
        RETURN QUERY SELECT w.lane_id, w.waiting FROM /*schema*/awa.waiting_lanes_0/*slot*/(v_snapshot, p_limit) AS w;
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', p_slot, true);
    END CASE;
END
$awa$;
