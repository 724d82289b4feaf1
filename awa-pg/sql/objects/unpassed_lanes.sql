-- Purpose: how many lanes of a slot have a row that no cursor has passed, at this moment.
-- Parameters: the slot.
-- Returns: the number of lanes; 0 means that every committed row is passed.
-- Locks: as unpassed_lanes_0.
-- Caller: drain and prune of the queue ring.
CREATE OR REPLACE FUNCTION /*schema*/awa.unpassed_lanes(p_slot smallint) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off AS $awa$
DECLARE
    v_snapshot pg_snapshot := /*schema*/awa.own_snapshot();
BEGIN
    -- In another cluster's numbering a row that waits looks passed, and the slot would be emptied over it.
    PERFORM /*schema*/awa.assert_same_cluster();
    CASE p_slot
    -- each queue slot:
    WHEN 0/*slot*/ THEN RETURN /*schema*/awa.unpassed_lanes_0/*slot*/(v_snapshot);
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', p_slot, true);
    END CASE;
END
$awa$;
