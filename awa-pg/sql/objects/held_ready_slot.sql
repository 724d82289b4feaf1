-- Purpose: the slot to which this transaction has appended ready rows already, and whose child it has locked.
-- Parameters: none.
-- Returns: the slot, or NULL. The setting names the transaction, because a session may outlive it; a rolled-back savepoint takes
--   it away together with the lock.
-- Locks: none.
-- Caller: enter_ready_slot, enqueue_at_once.
-- depends on: ready_slot_setting
CREATE OR REPLACE FUNCTION /*schema*/awa.held_ready_slot() RETURNS smallint
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_pinned text := current_setting(/*schema*/awa.ready_slot_setting(), true);
BEGIN
    RETURN CASE WHEN v_pinned LIKE pg_current_xact_id()::text || ':%' THEN split_part(v_pinned, ':', 2)::smallint END;
END
$awa$;
