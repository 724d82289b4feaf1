-- Purpose: reclaims a slot of the queue ring that was proven spent under its locks, and counts its history for good. Failed
--   jobs within their own retention go on in the open slot.
-- Parameters: the slot; how long failed jobs are kept, in microseconds; at most so many bytes of them are carried forward; the
--   present for tests.
-- Returns: how many failed jobs were carried forward.
-- Locks: ACCESS EXCLUSIVE on the children, held already; as carry_failed.
-- Caller: prune.
CREATE OR REPLACE FUNCTION /*schema*/awa.truncate_queue_slot(
    p_slot smallint, p_failed_us bigint DEFAULT 0, p_failed_bytes bigint DEFAULT 0, p_now timestamptz DEFAULT NULL)
RETURNS integer LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_carried integer := 0;
BEGIN
    IF p_failed_us > 0 AND p_failed_bytes > 0 THEN
        -- At most a thousand years, which are representable.
        v_carried := /*schema*/awa.carry_failed(
            p_slot, coalesce(p_now, clock_timestamp()) - least(p_failed_us, 31536000000000000) * interval '1 microsecond',
            p_failed_bytes);
    END IF;
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
    RETURN v_carried;
END
$awa$;
