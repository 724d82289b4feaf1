-- Purpose: the transaction-local setting that says which slot a transaction appends ready rows to, different for each schema.
-- Parameters: none.
-- Returns: its name.
-- Locks: none.
-- Caller: held_ready_slot, hold_ready_slot, enter_ready_slot.
CREATE OR REPLACE FUNCTION /*schema*/awa.ready_slot_setting() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $awa$
    SELECT 'awa.slot_' OPERATOR(pg_catalog.||) pg_catalog.substr(pg_catalog.md5('/*schema*/awa'), 1, 16)
$awa$;
