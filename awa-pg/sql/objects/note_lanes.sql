-- Purpose: notes which lanes have rows in a sealed slot, so that claims of other lanes leave the slot out. What is noted holds until the
--   slot is opened again: nobody can append to it any more once it is sealed and its writers have ended, which the lock shows.
-- Parameters: slot; its generation.
-- Returns: whether it was noted: not when a writer is still in the slot, or when it is no longer sealed. Of a slot that has more than
--   64 lanes it is noted that it may have any, so that nobody looks again.
-- Locks: SHARE on the child of ready_entries, only tried; the slot's row of queue_ring_slots.
-- Caller: drain.
-- depends on: try_lock_queue_slot, lanes_with_rows_0
CREATE OR REPLACE FUNCTION /*schema*/awa.note_lanes(p_slot smallint, p_generation bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $awa$
DECLARE
    -- Every claim reads them.
    c_most  CONSTANT integer := 64;
    v_lanes bigint[];
BEGIN
    IF NOT /*schema*/awa.try_lock_queue_slot(p_slot, false) THEN
        RETURN false;
    END IF;
    -- Read in a statement behind the lock.
    CASE p_slot
    -- each queue slot:
    WHEN 0/*slot*/ THEN v_lanes := /*schema*/awa.lanes_with_rows_0/*slot*/(NULL, c_most, NULL, NULL);
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', p_slot, true);
    END CASE;
    UPDATE /*schema*/awa.queue_ring_slots AS s SET has_noted_lanes = true, lanes = v_lanes
    WHERE s.slot = p_slot AND s.generation = p_generation AND s.state = 'sealed' AND NOT s.has_noted_lanes
      AND (SELECT p.last_value & 63 FROM /*schema*/awa.queue_ring_pointer AS p) <> p_slot;
    RETURN FOUND;
END
$awa$;
