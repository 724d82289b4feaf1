-- Purpose: reclaims a slot of the queue ring that was proven spent under its locks, and counts its history for good.
-- Parameters: the slot.
-- Returns: nothing.
-- Locks: ACCESS EXCLUSIVE on the children, held already.
-- Caller: prune.
CREATE OR REPLACE FUNCTION /*schema*/awa.truncate_queue_slot(p_slot smallint) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    CASE p_slot
    -- each queue slot:
    WHEN 0/*slot*/ THEN
        PERFORM /*schema*/awa.fold_counters_0/*slot*/();
        -- A child without pages is left alone: each TRUNCATE writes to the catalog.
        IF pg_relation_size('/*schema*/awa.ready_entries_0/*slot*/') > 0 THEN
            TRUNCATE /*schema*/awa.ready_entries_0/*slot*/;
            -- Truncation summarises the first range, which would then write to the log with each row.
            PERFORM brin_desummarize_range('/*schema*/awa.ready_entries_first_0/*slot*/', 0);
        END IF;
        IF pg_relation_size('/*schema*/awa.ready_claim_attempt_batches_0/*slot*/') > 0 THEN
            TRUNCATE /*schema*/awa.ready_claim_attempt_batches_0/*slot*/;
        END IF;
        IF pg_relation_size('/*schema*/awa.ready_tombstones_0/*slot*/') > 0 THEN
            TRUNCATE /*schema*/awa.ready_tombstones_0/*slot*/;
        END IF;
        IF pg_relation_size('/*schema*/awa.done_entries_0/*slot*/') > 0 THEN
            TRUNCATE /*schema*/awa.done_entries_0/*slot*/;
        END IF;
        IF pg_relation_size('/*schema*/awa.receipt_completion_batches_0/*slot*/') > 0 THEN
            TRUNCATE /*schema*/awa.receipt_completion_batches_0/*slot*/;
            PERFORM brin_desummarize_range('/*schema*/awa.receipt_completion_batches_attempt_0/*slot*/', 0);
        END IF;
        IF pg_relation_size('/*schema*/awa.receipt_completion_tombstones_0/*slot*/') > 0 THEN
            TRUNCATE /*schema*/awa.receipt_completion_tombstones_0/*slot*/;
        END IF;
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', p_slot, true);
    END CASE;
    UPDATE /*schema*/awa.queue_ring_slots SET state = 'free' WHERE slot = p_slot;
END
$awa$;
