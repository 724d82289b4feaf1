-- Purpose: moves all waiting rows of a slot into the carry-over.
-- Parameters: the slot; at most so many rows, more are a sign that the facts changed.
-- Returns: how many were moved; -1 when somebody holds one of the lanes, or more wait than that: the caller rolls back.
-- Locks: SHARE on the child of ready_tombstones and the advisory locks of the lanes, only tried; as carry_lane_0.
-- Caller: Maintainer::unpin.
CREATE OR REPLACE FUNCTION /*schema*/awa.carry_slot(p_slot smallint, p_limit bigint) RETURNS integer
LANGUAGE plpgsql VOLATILE SET jit = off SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off AS $awa$
DECLARE
    v_lane  bigint;
    v_moved integer := 0;
BEGIN
    -- A job that an open transaction is about to cancel stays where the tombstone is.
    BEGIN
        CASE p_slot
        -- each queue slot:
        WHEN 0/*slot*/ THEN LOCK TABLE /*schema*/awa.ready_tombstones_0/*slot*/ IN SHARE MODE NOWAIT;
        -- end each
        ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', p_slot, true);
        END CASE;
    EXCEPTION WHEN lock_not_available THEN
        RETURN -1;
    END;
    FOR v_lane IN SELECT w.lane_id FROM /*schema*/awa.waiting_lanes(p_slot, p_limit + 1) AS w ORDER BY w.lane_id LOOP
        IF NOT pg_try_advisory_xact_lock(/*schema*/awa.lane_key(v_lane)) THEN
            RETURN -1;
        END IF;
        -- Statements after the lock see what the lane's last claim committed.
        CASE p_slot
        -- each queue slot:
        WHEN 0/*slot*/ THEN
            v_moved := v_moved + /*schema*/awa.carry_lane_0/*slot*/(v_lane, /*schema*/awa.own_snapshot());
        -- end each
        ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', p_slot, true);
        END CASE;
    END LOOP;
    RETURN CASE WHEN v_moved > p_limit THEN -1 ELSE v_moved END;
END
$awa$;
