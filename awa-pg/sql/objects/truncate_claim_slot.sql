-- Purpose: reclaims a slot of the claim ring that was proven spent under its locks, and puts its rescue cursors back to
--   the start.
-- Parameters: the slot.
-- Returns: nothing.
-- Locks: ACCESS EXCLUSIVE on the children, held already.
-- Caller: prune.
CREATE OR REPLACE FUNCTION /*schema*/awa.truncate_claim_slot(p_slot smallint) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    UPDATE /*schema*/awa.claim_ring_slots
    SET state = 'free', stale_cursor_at = NULL, stale_cursor_batch = NULL, stale_resume_at = NULL,
        stale_resume_batch = NULL, deadline_cursor_at = NULL, deadline_cursor_job = NULL, deadline_cursor_lease = NULL,
        batch_deadline_cursor_at = NULL, batch_deadline_cursor_batch = NULL, batch_deadline_resume_at = NULL,
        batch_deadline_resume_batch = NULL, deadline_resume_at = NULL, deadline_resume_job = NULL,
        deadline_resume_lease = NULL, row_stale_cursor_at = NULL, row_stale_cursor_job = NULL,
        row_stale_cursor_lease = NULL, row_stale_resume_at = NULL, row_stale_resume_job = NULL,
        row_stale_resume_lease = NULL
    WHERE slot = p_slot;
    CASE p_slot
    -- each claim slot:
    WHEN 0/*slot*/ THEN
        -- A child without pages is left alone: each TRUNCATE writes to the catalog.
        IF pg_relation_size('/*schema*/awa.lease_claim_batches_0/*slot*/') > 0 THEN
            TRUNCATE /*schema*/awa.lease_claim_batches_0/*slot*/;
        END IF;
        IF pg_relation_size('/*schema*/awa.lease_claims_0/*slot*/') > 0 THEN
            TRUNCATE /*schema*/awa.lease_claims_0/*slot*/;
        END IF;
        IF pg_relation_size('/*schema*/awa.lease_claim_closure_batches_0/*slot*/') > 0 THEN
            TRUNCATE /*schema*/awa.lease_claim_closure_batches_0/*slot*/;
        END IF;
        IF pg_relation_size('/*schema*/awa.lease_claim_closures_0/*slot*/') > 0 THEN
            TRUNCATE /*schema*/awa.lease_claim_closures_0/*slot*/;
        END IF;
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', p_slot, true);
    END CASE;
END
$awa$;
