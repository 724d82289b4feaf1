-- Purpose: the writer protocol of done_entries: which slot takes the wide row of a job that ends now, with its child
--   locked until the end of the transaction.
-- Parameters: none.
-- Returns: the slot.
-- Locks: ROW EXCLUSIVE on one child of done_entries.
-- Caller: end_attempts, cancel_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.enter_done_slot() RETURNS smallint
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_pointer bigint;
    v_again   bigint;
BEGIN
    SELECT last_value INTO v_pointer FROM /*schema*/awa.queue_ring_pointer;
    FOR v_turn IN 1..8 LOOP
        CASE v_pointer & 63
        -- each queue slot:
        WHEN 0/*slot*/ THEN LOCK TABLE /*schema*/awa.done_entries_0/*slot*/ IN ROW EXCLUSIVE MODE;
        -- end each
        ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', (v_pointer & 63)::smallint, true);
        END CASE;
        SELECT last_value INTO v_again FROM /*schema*/awa.queue_ring_pointer;
        IF v_again = v_pointer THEN
            RETURN v_pointer & 63;
        END IF;
        v_pointer := v_again;
    END LOOP;
    RAISE EXCEPTION 'the queue ring rotated 8 times while one job was being ended' USING ERRCODE = '40001';
END
$awa$;
