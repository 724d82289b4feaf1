-- Purpose: the writer protocol of ready_entries: which slot this transaction appends ready rows to, with its child
--   locked until the end of the transaction, so that the slot can be neither drained nor truncated meanwhile.
-- Parameters: none.
-- Returns: the slot. A transaction stays in the slot it began in, so that its jobs keep their order; the slot is
--   remembered in a transaction-local setting that names the transaction, and that a rolled-back savepoint takes with
--   it together with the lock.
-- Locks: ROW EXCLUSIVE on one child of ready_entries.
-- Caller: enqueue_jobs, append_again.
CREATE OR REPLACE FUNCTION /*schema*/awa.enter_ready_slot() RETURNS smallint
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_setting text := 'awa.slot_' || substr(md5('/*schema*/awa'), 1, 16);
    v_xid     text := pg_current_xact_id()::text;
    v_pinned  text := current_setting(v_setting, true);
    v_is_held boolean := v_pinned LIKE v_xid || ':%';
    v_pointer bigint;
    v_again   bigint;
    v_slot    smallint;
BEGIN
    SELECT last_value INTO v_pointer FROM /*schema*/awa.queue_ring_pointer;
    FOR v_turn IN 1..8 LOOP
        v_slot := CASE WHEN v_is_held THEN split_part(v_pinned, ':', 2)::smallint ELSE v_pointer & 63 END;
        CASE v_slot
        -- each queue slot:
        WHEN 0/*slot*/ THEN LOCK TABLE /*schema*/awa.ready_entries_0/*slot*/ IN ROW EXCLUSIVE MODE;
        -- end each
        ELSE
            PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_slot, false);
            RAISE EXCEPTION 'the open slot % is not a slot of the queue ring', v_slot
                USING ERRCODE = 'AW002', CONSTRAINT = 'AW002', HINT = 'the setting ' || v_setting || ' or queue_ring_pointer was changed by hand';
        END CASE;
        IF v_is_held THEN
            RETURN v_slot;
        END IF;
        SELECT last_value INTO v_again FROM /*schema*/awa.queue_ring_pointer;
        IF v_again = v_pointer THEN
            PERFORM set_config(v_setting, v_xid || ':' || v_slot::text, true);
            RETURN v_slot;
        END IF;
        v_pointer := v_again;
    END LOOP;
    RAISE EXCEPTION 'the queue ring rotated 8 times while one job was being written'
        USING ERRCODE = '40001', HINT = 'enqueue again; rotations this fast mean a rotation interval that is far too short';
END
$awa$;
