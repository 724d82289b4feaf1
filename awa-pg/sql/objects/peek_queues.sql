-- Purpose: which of many queues have something to claim: what a process asks for all its idle queues at once. It looks where
--   claim_jobs would look, takes nothing and writes nothing.
-- Parameters: queues.
-- Returns: the places (from 1) in the input of the queues of which a claim may find something, each once; and below which
--   transaction everything was visible, as claim_jobs tells it. Every queue is named whose job was committed before the call
--   and is not held back by a pause. Rows under a tombstone count, as they do for a claim.
-- Locks: ACCESS SHARE on the children of the undrained slots that hold something, and on carried_entries while it does.
-- Caller: Consumer::peek, other languages.
-- depends on: peek_lanes_0
CREATE OR REPLACE FUNCTION /*schema*/awa.peek_queues(p_queues text[], OUT waiting integer[], OUT horizon bigint)
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $awa$
DECLARE
    -- Rows of transactions that still run are walked through in slots up to this size, which is cheaper than to look
    -- between all of them.
    c_small    CONSTANT bigint := 8388608;
    v_snapshot pg_snapshot;
    v_pointer  bigint;
    v_slot     record;
    v_bytes    bigint;
    v_floor    xid8;
    v_lanes    bigint[];
    v_owners   integer[];
    v_found    integer[] := '{}';
    v_los      xid8[];
    v_his      xid8[];
    v_is_known boolean := false;
BEGIN
    PERFORM /*schema*/awa.assert_same_cluster();
    v_snapshot := /*schema*/awa.own_snapshot();
    horizon := pg_snapshot_xmin(v_snapshot)::text::bigint;
    SELECT last_value INTO v_pointer FROM /*schema*/awa.queue_ring_pointer;
    -- The slots as claim_jobs looks through them; -1 is what was carried over.
    FOR v_slot IN
        SELECT (-1)::smallint AS slot
        UNION ALL
        SELECT s.slot FROM /*schema*/awa.queue_ring_slots AS s
        WHERE s.state IN ('open', 'sealed') OR s.slot = (v_pointer & 63)
    LOOP
        CASE v_slot.slot
        WHEN -1 THEN v_bytes := pg_relation_size('/*schema*/awa.carried_entries');
        -- each queue slot:
        WHEN 0/*slot*/ THEN v_bytes := pg_relation_size('/*schema*/awa.ready_entries_0/*slot*/');
        -- end each
        ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_slot.slot, true);
        END CASE;
        CONTINUE WHEN v_bytes = 0;
        IF NOT v_is_known THEN
            v_is_known := true;
            SELECT array_agg(k.lane_id), array_agg(q.o::integer) INTO v_lanes, v_owners
            FROM unnest(p_queues) WITH ORDINALITY AS q (queue, o)
            CROSS JOIN LATERAL (SELECT l.lane_id FROM /*schema*/awa.queue_lanes AS l
                                WHERE l.queue = q.queue AND NOT l.paused OFFSET 0) AS k;
        END IF;
        EXIT WHEN v_lanes IS NULL;
        IF v_bytes <= c_small THEN
            v_los := ARRAY['0'::xid8];
            v_his := ARRAY[pg_snapshot_xmax(v_snapshot)];
        ELSE
            v_los := ARRAY(SELECT x FROM pg_snapshot_xip(v_snapshot) AS x ORDER BY x);
            v_his := v_los || pg_snapshot_xmax(v_snapshot);
            v_los := '0'::xid8 || v_los;
        END IF;
        CASE v_slot.slot
        WHEN -1 THEN
            v_floor := /*schema*/awa.carried_floor();
            v_found := v_found || ARRAY(
                SELECT w.owner FROM unnest(v_lanes, v_owners) AS w (lane, owner)
                WHERE (SELECT true FROM /*schema*/awa.carried_entries AS c
                       WHERE c.lane_id = w.lane AND c.moved_xid >= v_floor LIMIT 1));
        -- each queue slot:
        WHEN 0/*slot*/ THEN
            v_found := v_found || /*schema*/awa.peek_lanes_0/*slot*/(v_lanes, v_owners, v_snapshot, v_los, v_his);
        -- end each
        ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_slot.slot, true);
        END CASE;
    END LOOP;
    waiting := ARRAY(SELECT DISTINCT f FROM unnest(v_found) AS f ORDER BY f);
END
$awa$;
