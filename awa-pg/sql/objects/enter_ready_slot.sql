-- Purpose: the writer protocol of ready_entries: which slot this transaction appends ready rows to, with its child
--   locked until the end of the transaction, so that the slot can be neither drained nor truncated meanwhile.
-- Parameters: none.
-- Returns: the slot. A transaction stays in the slot it began in, so that its jobs keep their order (see held_ready_slot).
-- Locks: ROW EXCLUSIVE on one child of ready_entries.
-- Caller: enqueue_jobs, append_again.
-- depends on: held_ready_slot, hold_ready_slot, ready_slot_setting
CREATE OR REPLACE FUNCTION /*schema*/awa.enter_ready_slot() RETURNS smallint
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_held    smallint := /*schema*/awa.held_ready_slot();
    v_pointer bigint;
    v_again   bigint;
    v_slot    smallint;
BEGIN
    SELECT last_value INTO v_pointer FROM /*schema*/awa.queue_ring_pointer;
    FOR v_turn IN 1..8 LOOP
        v_slot := coalesce(v_held, (v_pointer & 63)::smallint);
        CASE v_slot
        -- each queue slot:
        WHEN 0/*slot*/ THEN LOCK TABLE /*schema*/awa.ready_entries_0/*slot*/ IN ROW EXCLUSIVE MODE;
        -- end each
        ELSE
            PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_slot, false);
            RAISE EXCEPTION 'the open slot % is not a slot of the queue ring', v_slot
                USING ERRCODE = 'AW002', CONSTRAINT = 'AW002', HINT = 'the setting ' || /*schema*/awa.ready_slot_setting() || ' or queue_ring_pointer was changed by hand';
        END CASE;
        IF v_held IS NOT NULL THEN
            RETURN v_slot;
        END IF;
        SELECT last_value INTO v_again FROM /*schema*/awa.queue_ring_pointer;
        IF v_again = v_pointer THEN
            PERFORM /*schema*/awa.hold_ready_slot(v_slot);
            RETURN v_slot;
        END IF;
        v_pointer := v_again;
    END LOOP;
    RAISE EXCEPTION 'the queue ring rotated 8 times while one job was being written'
        USING ERRCODE = '40001', HINT = 'enqueue again; rotations this fast mean a rotation interval that is far too short';
END
$awa$;
