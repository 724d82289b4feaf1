-- Purpose: keeps the indexes that look-ups by id use up to date, in every slot of the queue ring that holds something.
-- Parameters: none.
-- Returns: how many ranges were summarised.
-- Locks: as summarise_index, waiting at most 10 ms; a slot that somebody is reclaiming is left for the next time.
-- Caller: Maintainer::drain.
CREATE OR REPLACE FUNCTION /*schema*/awa.summarise_slots() RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET lock_timeout = '10ms' AS $awa$
DECLARE
    v_slot  record;
    v_total bigint := 0;
BEGIN
    FOR v_slot IN
        SELECT s.slot, s.state = 'drained' AS is_drained FROM /*schema*/awa.queue_ring_slots AS s WHERE s.state <> 'free'
    LOOP
        BEGIN
            CASE v_slot.slot
            -- each queue slot:
            WHEN 0/*slot*/ THEN
                v_total := v_total + /*schema*/awa.summarise_index('/*schema*/awa.ready_entries_0/*slot*/',
                    '/*schema*/awa.ready_entries_first_0/*slot*/', 32, v_slot.is_drained);
                v_total := v_total + /*schema*/awa.summarise_index('/*schema*/awa.receipt_completion_batches_0/*slot*/',
                    '/*schema*/awa.receipt_completion_batches_attempt_0/*slot*/', 16, v_slot.is_drained);
            -- end each
            ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_slot.slot, true);
            END CASE;
        EXCEPTION WHEN lock_not_available THEN
            NULL;
        END;
    END LOOP;
    RETURN v_total;
END
$awa$;
