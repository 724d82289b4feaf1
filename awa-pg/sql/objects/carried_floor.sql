-- Purpose: where a search for rows that were carried over begins: all that came before are gone for good.
-- Parameters: none.
-- Returns: a lower bound of carried_entries.moved_xid; 0 when none was found out for this file of the table, which a restore
--   or a truncation makes anew.
-- Locks: ACCESS SHARE on the two sequences.
-- Caller: claim_jobs, claim_carried, peek_queues, raise_carried_floor.
CREATE OR REPLACE FUNCTION /*schema*/awa.carried_floor() RETURNS xid8
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_file bigint;
    v_xid  bigint;
BEGIN
    -- The file first: it is set after the number was cleared.
    SELECT s.last_value INTO v_file FROM /*schema*/awa.carried_floor_file AS s;
    IF v_file IS DISTINCT FROM pg_relation_filenode('/*schema*/awa.carried_entries')::bigint THEN
        RETURN '0';
    END IF;
    SELECT s.last_value INTO v_xid FROM /*schema*/awa.carried_floor_xid AS s;
    RETURN v_xid::text::xid8;
END
$awa$;
