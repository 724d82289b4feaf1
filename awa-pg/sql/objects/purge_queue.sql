-- Purpose: removes the jobs of a queue that wait and were committed when the call began, in a transaction of its own.
-- Parameters: queue; whether also those that wait for their time.
-- Returns: how many were removed, and whether something was left because somebody else was changing it: ask again.
-- Locks: the advisory locks of the lanes, only tried, kept to the end of the transaction; as purge_lane_0; the rows deleted,
--   only tried.
-- Caller: Operator::purge_queue.
CREATE OR REPLACE FUNCTION /*schema*/awa.purge_queue(
    p_queue text, p_deferred boolean DEFAULT false, OUT jobs bigint, OUT contended boolean)
LANGUAGE plpgsql VOLATILE SET jit = off SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off AS $awa$
DECLARE
    v_snapshot pg_snapshot;
    v_lane     bigint;
    v_slot     smallint;
    v_part     bigint;
    v_ids      bigint[];
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' OR pg_current_xact_id_if_assigned() IS NOT NULL THEN
        RAISE EXCEPTION 'purge_queue must be a READ COMMITTED statement of its own' USING ERRCODE = 'AW003', CONSTRAINT = 'AW003',
            HINT = 'inside another transaction it would hold lanes until that transaction ends';
    END IF;
    PERFORM /*schema*/awa.assert_same_cluster();
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    jobs := 0;
    contended := false;
    v_snapshot := /*schema*/awa.own_snapshot();
    -- Lanes that only an enqueue has named so far.
    PERFORM /*schema*/awa.fold_lane_hints();
    FOR v_lane IN SELECT l.lane_id FROM /*schema*/awa.queue_lanes AS l WHERE l.queue = p_queue ORDER BY l.lane_id LOOP
        IF NOT pg_try_advisory_xact_lock(/*schema*/awa.lane_key(v_lane)) THEN
            contended := true;
            CONTINUE;
        END IF;
        -- Statements after the lock see what the lane's last claim committed.
        IF pg_relation_size('/*schema*/awa.carried_entries') > 0 THEN
            WITH gone AS (
                DELETE FROM /*schema*/awa.carried_entries AS c WHERE c.lane_id = v_lane RETURNING c.job_id)
            SELECT array_agg(g.job_id) INTO v_ids FROM gone AS g;
            IF v_ids IS NOT NULL THEN
                PERFORM /*schema*/awa.forget_removed(v_ids);
                jobs := jobs + cardinality(v_ids);
            END IF;
        END IF;
        FOR v_slot IN
            SELECT s.slot FROM /*schema*/awa.queue_ring_slots AS s
            WHERE s.state IN ('open', 'sealed')
               OR s.slot = ((SELECT p.last_value FROM /*schema*/awa.queue_ring_pointer AS p) & 63)
        LOOP
            CASE v_slot
            -- each queue slot:
            WHEN 0/*slot*/ THEN v_part := /*schema*/awa.purge_lane_0/*slot*/(v_lane, v_snapshot);
            -- end each
            ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_slot, true);
            END CASE;
            IF v_part < 0 THEN
                contended := true;
            ELSE
                jobs := jobs + v_part;
            END IF;
        END LOOP;
    END LOOP;
    IF p_deferred THEN
        WITH gone AS (
            DELETE FROM /*schema*/awa.deferred_jobs AS d
            WHERE d.job_id = ANY (ARRAY(SELECT f.job_id FROM /*schema*/awa.deferred_jobs AS f
                                        WHERE f.queue = p_queue FOR UPDATE SKIP LOCKED))
            RETURNING d.job_id)
        SELECT array_agg(g.job_id) INTO v_ids FROM gone AS g;
        IF v_ids IS NOT NULL THEN
            PERFORM /*schema*/awa.forget_removed(v_ids);
            jobs := jobs + cardinality(v_ids);
        END IF;
        PERFORM FROM /*schema*/awa.deferred_jobs AS d WHERE d.queue = p_queue LIMIT 1;
        contended := contended OR FOUND;
    END IF;
END
$awa$;
