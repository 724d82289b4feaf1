-- Purpose: notes which slot this transaction appends ready rows to from now on, as held_ready_slot tells it.
-- Parameters: slot, whose child the transaction has locked.
-- Returns: nothing.
-- Locks: none.
-- Caller: enter_ready_slot, enqueue_at_once.
-- depends on: ready_slot_setting
CREATE OR REPLACE FUNCTION /*schema*/awa.hold_ready_slot(p_slot smallint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    PERFORM set_config(
        /*schema*/awa.ready_slot_setting(), pg_current_xact_id()::text || ':' || p_slot::text, true);
END
$awa$;
