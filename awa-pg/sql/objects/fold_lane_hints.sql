-- Purpose: makes lanes of queues that were used before any worker opened them.
-- Parameters: none.
-- Returns: how many hints were folded.
-- Locks: the rows of lane_hints that nobody else holds.
-- Caller: Maintainer::tidy, and the claim of a worker whose queue has hints.
CREATE OR REPLACE FUNCTION /*schema*/awa.fold_lane_hints() RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_hint  record;
    v_total integer := 0;
BEGIN
    FOR v_hint IN
        SELECT h.ctid AS at, h.queue, h.shard FROM /*schema*/awa.lane_hints AS h
        ORDER BY h.queue, h.shard LIMIT 1000 FOR UPDATE SKIP LOCKED
    LOOP
        PERFORM /*schema*/awa.open_queue(v_hint.queue, v_hint.shard);
        DELETE FROM /*schema*/awa.lane_hints AS h WHERE h.ctid = v_hint.at;
        v_total := v_total + 1;
    END LOOP;
    RETURN v_total;
END
$awa$;
