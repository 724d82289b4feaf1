-- Purpose: the size of a slot of the queue ring.
-- Parameters: the slot.
-- Returns: the bytes of all its children, without indexes.
-- Locks: none that are kept.
-- Caller: rotate, drain, prune, unpin, doctor.
CREATE OR REPLACE FUNCTION /*schema*/awa.queue_slot_bytes(p_slot smallint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    CASE p_slot
    -- each queue slot:
    WHEN 0/*slot*/ THEN
        RETURN pg_relation_size('/*schema*/awa.ready_entries_0/*slot*/')
            + pg_relation_size('/*schema*/awa.ready_claim_attempt_batches_0/*slot*/')
            + pg_relation_size('/*schema*/awa.ready_tombstones_0/*slot*/')
            + pg_relation_size('/*schema*/awa.done_entries_0/*slot*/')
            + pg_relation_size('/*schema*/awa.receipt_completion_batches_0/*slot*/')
            + pg_relation_size('/*schema*/awa.receipt_completion_tombstones_0/*slot*/');
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', p_slot, true);
    END CASE;
END
$awa$;
