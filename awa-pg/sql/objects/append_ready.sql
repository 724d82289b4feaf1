-- Purpose: appends ready rows to the slot that enter_ready_slot returned.
-- Parameters: the slot; the rest as append_ready_to_0.
-- Returns: nothing.
-- Locks: none beyond those of enter_ready_slot.
-- Caller: enqueue_jobs, append_again.
CREATE OR REPLACE FUNCTION /*schema*/awa.append_ready(
    p_slot smallint, p_jobs bigint[], p_lanes bigint[], p_kinds text[], p_args json[], p_max_attempts smallint[],
    p_metadata json[], p_created timestamptz[], p_attempts smallint[], p_leases bigint[], p_errors text[],
    p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    CASE p_slot
    -- each queue slot:
    WHEN 0/*slot*/ THEN
        PERFORM /*schema*/awa.append_ready_to_0/*slot*/(p_jobs, p_lanes, p_kinds, p_args, p_max_attempts, p_metadata,
            p_created, p_attempts, p_leases, p_errors, p_now);
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', p_slot, true);
    END CASE;
END
$awa$;
