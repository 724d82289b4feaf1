-- Purpose: which of many queues have something to claim: what a process asks for all its idle queues at once. It looks where
--   claim_jobs would look, takes nothing and writes nothing.
-- Parameters: queues.
-- Returns: the places (from 1) in the input of the queues of which a claim may find something, each once; and below which
--   transaction everything was visible, as claim_jobs tells it. Every queue is named whose job was committed before the call
--   and is not held back by a pause. Rows under a tombstone count, as they do for a claim.
-- Locks: ACCESS SHARE on the children of the undrained slots that hold something, and on carried_entries while it does.
-- Caller: Consumer::peek, other languages.
-- depends on: lanes_with_rows_0, peek_lanes_0
CREATE OR REPLACE FUNCTION /*schema*/awa.peek_queues(p_queues text[], OUT waiting integer[], OUT horizon bigint)
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $awa$
DECLARE
    -- In a slot up to this size, the lanes that have rows are found by walking from lane to lane, also over rows of transactions
    -- that still run. Where they turn out to be more than those of the queues, the rows of each lane are looked for, as they are
    -- in larger slots.
    c_small    CONSTANT bigint := 8388608;
    c_most     CONSTANT integer := 4 * cardinality(p_queues);
    v_snapshot pg_snapshot;
    v_pointer  bigint;
    v_slot     record;
    v_bytes    bigint;
    v_floor    xid8;
    v_all      bigint[];
    v_lanes    bigint[];
    v_part     bigint[];
    v_peek     record;
    v_found    bigint[];
    v_los      xid8[];
    v_his      xid8[];
BEGIN
    PERFORM /*schema*/awa.assert_same_cluster();
    v_snapshot := /*schema*/awa.own_snapshot();
    horizon := pg_snapshot_xmin(v_snapshot)::text::bigint;
    waiting := '{}';
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
        v_lanes := NULL;
        v_los := ARRAY['0'::xid8];
        v_his := ARRAY[pg_snapshot_xmax(v_snapshot)];
        IF v_bytes > c_small THEN
            v_los := v_los || ARRAY(SELECT x FROM pg_snapshot_xip(v_snapshot) AS x ORDER BY x);
            v_his := v_los[2:] || v_his;
        END IF;
        LOOP
            IF v_bytes > c_small THEN
                v_all := coalesce(v_all, ARRAY(
                    SELECT k.lane_id FROM unnest(p_queues) AS q (queue)
                    CROSS JOIN LATERAL (SELECT l.lane_id FROM /*schema*/awa.queue_lanes AS l
                                        WHERE l.queue = q.queue AND NOT l.paused OFFSET 0) AS k));
                v_lanes := v_all;
            END IF;
            CASE v_slot.slot
            WHEN -1 THEN
                v_floor := /*schema*/awa.carried_floor();
                IF v_lanes IS NULL THEN
                    v_part := ARRAY(SELECT DISTINCT c.lane_id FROM /*schema*/awa.carried_entries AS c
                                    WHERE c.moved_xid >= v_floor);
                ELSE
                    v_part := ARRAY(SELECT w.lane FROM unnest(v_lanes) AS w (lane)
                                    WHERE (SELECT true FROM /*schema*/awa.carried_entries AS c
                                           WHERE c.lane_id = w.lane AND c.moved_xid >= v_floor LIMIT 1));
                END IF;
            -- each queue slot:
            WHEN 0/*slot*/ THEN
                v_part := /*schema*/awa.lanes_with_rows_0/*slot*/(v_lanes, c_most, v_los, v_his);
                IF v_part IS NOT NULL THEN
                    v_peek := /*schema*/awa.peek_lanes_0/*slot*/(v_part, v_snapshot);
                    -- A claim of a lane with a damaged cursor says so; a look at many queues does not fail for one.
                    v_part := coalesce(v_peek.lanes || v_peek.doubtful, '{}');
                END IF;
            -- end each
            ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_slot.slot, true);
            END CASE;
            EXIT WHEN v_part IS NOT NULL;
            v_bytes := c_small + 1;
        END LOOP;
        v_found := v_found || v_part;
    END LOOP;
    IF cardinality(v_found) > 0 THEN
        waiting := /*schema*/awa.queues_of_lanes(v_found, p_queues);
    END IF;
END
$awa$;
