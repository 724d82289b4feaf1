-- Purpose: lets a new job take the key of one that waits, which is cancelled.
-- Parameters: key; the job that holds it; the job that takes it, and in which states it will hold it; the present.
-- Returns: 'replaced'; 'kept' when the holder does not wait; 'gone' when it does not hold the key any more.
-- Locks: the row of the key to the end of the transaction, which no end of an attempt waits for; the row of deferred_jobs of
--   the holder, waiting for whoever is promoting or cancelling it; as cancel_deferred and bury_waiting_0.
-- Caller: enqueue_unique_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.replace_waiting_job(
    p_key bytea, p_old bigint, p_new bigint, p_states smallint, p_now timestamptz)
RETURNS text LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_reason text := 'replaced by job ' || p_new;
    v_slot   record;
    v_is_old boolean := false;
BEGIN
    PERFORM FROM /*schema*/awa.unique_claims AS c WHERE c.key = p_key AND c.job_id = p_old FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'gone';
    END IF;
    PERFORM FROM /*schema*/awa.deferred_jobs AS d WHERE d.job_id = p_old FOR UPDATE;
    IF FOUND THEN
        -- First, so that the cancel finds no key to give back.
        UPDATE /*schema*/awa.unique_claims AS c SET job_id = p_new, states = p_states WHERE c.key = p_key;
        PERFORM /*schema*/awa.cancel_deferred(p_old, v_reason, p_now);
        RETURN 'replaced';
    END IF;
    -- Only where rows may wait: reading the other slots would keep them from being reclaimed. The newest first.
    FOR v_slot IN
        SELECT s.slot FROM /*schema*/awa.queue_ring_slots AS s
        WHERE s.state IN ('open', 'sealed') OR s.slot = ((SELECT p.last_value FROM /*schema*/awa.queue_ring_pointer AS p) & 63)
        ORDER BY s.slot = ((SELECT p.last_value FROM /*schema*/awa.queue_ring_pointer AS p) & 63) DESC, s.generation DESC
    LOOP
        CASE v_slot.slot
        -- each queue slot:
        WHEN 0/*slot*/ THEN v_is_old := /*schema*/awa.bury_waiting_0/*slot*/(p_old, v_reason, p_now);
        -- end each
        ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_slot.slot, true);
        END CASE;
        EXIT WHEN v_is_old;
    END LOOP;
    IF NOT v_is_old THEN
        RETURN 'kept';
    END IF;
    UPDATE /*schema*/awa.unique_claims AS c SET job_id = p_new, states = p_states WHERE c.key = p_key;
    RETURN 'replaced';
END
$awa$;
