-- Purpose: locks a slot of the queue ring for maintenance, without ever waiting.
-- Parameters: the slot; false: against writers of ready rows only (for draining), true: against everybody (for pruning).
-- Returns: whether it was granted; a refusal leaves no lock behind.
-- Locks: SHARE on the child of ready_entries, or ACCESS EXCLUSIVE on all children of the slot, in the order of the hot
--   path; kept to the end of the transaction.
-- Caller: drain and prune of the queue ring.
CREATE OR REPLACE FUNCTION /*schema*/awa.try_lock_queue_slot(p_slot smallint, p_is_exclusive boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    CASE p_slot
    -- each queue slot:
    WHEN 0/*slot*/ THEN
        IF p_is_exclusive THEN
            LOCK TABLE /*schema*/awa.ready_entries_0/*slot*/, /*schema*/awa.ready_claim_attempt_batches_0/*slot*/,
                /*schema*/awa.ready_tombstones_0/*slot*/, /*schema*/awa.done_entries_0/*slot*/,
                /*schema*/awa.receipt_completion_batches_0/*slot*/, /*schema*/awa.receipt_completion_tombstones_0/*slot*/
                IN ACCESS EXCLUSIVE MODE NOWAIT;
        ELSE
            LOCK TABLE /*schema*/awa.ready_entries_0/*slot*/ IN SHARE MODE NOWAIT;
        END IF;
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', p_slot, true);
    END CASE;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$awa$;
