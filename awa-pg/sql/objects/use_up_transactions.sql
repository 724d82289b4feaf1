-- Purpose: hands out transaction numbers to nobody. A new cluster may have handed out fewer than repair needs for
--   keeping jobs in order.
-- Parameters: how many.
-- Returns: nothing.
-- Locks: none. Each number is a transaction of its own, so that it is past when this returns.
-- Caller: repair.
CREATE OR REPLACE PROCEDURE /*schema*/awa.use_up_transactions(p_count bigint)
LANGUAGE plpgsql AS $awa$
BEGIN
    FOR v_turn IN 1..p_count LOOP
        PERFORM pg_current_xact_id();
        COMMIT;
    END LOOP;
END
$awa$;
