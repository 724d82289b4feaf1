-- Purpose: the plain case of enqueue_jobs, at a third of its price: jobs of one queue, priority, kind and attempt budget that are
--   to run at once and have no ordering key. What is not plain after all (the first use of a queue, shards) goes to enqueue_jobs.
-- Parameters: queue; priority; kind; arguments, one element per job; attempt budget; metadata, one element per job (NULL:
--   none); whether to wake sleeping dispatchers, NULL: yes, and this call is a transaction of its own; the present for tests.
-- Returns: the job ids, in input order.
-- Locks: as enqueue_jobs.
-- Caller: Producer::enqueue, enqueue in a driver's transaction.
-- depends on: wake_bucket, home_cluster, held_ready_slot, hold_ready_slot
CREATE OR REPLACE FUNCTION /*schema*/awa.enqueue_at_once(
    p_queue text, p_priority smallint, p_kind text, p_args json[], p_max_attempts smallint, p_metadata json[],
    p_wake boolean, p_now timestamptz)
RETURNS bigint[] LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $awa$
DECLARE
    v_held      smallint;
    v_pointer   bigint := pg_sequence_last_value('/*schema*/awa.queue_ring_pointer');
    v_slot      smallint := v_pointer & 63;
    v_jobs      bigint[];
    v_is_stored boolean := false;
    v_has_told  boolean;
BEGIN
    -- The session has been found at home, as in assert_same_cluster.
    IF current_setting('awa.cluster', true) = /*schema*/awa.home_cluster()::text
       AND pg_relation_size('/*schema*/awa.queue_settings') = 0
       AND octet_length(p_kind) BETWEEN 1 AND 200 AND p_max_attempts > 0
       AND coalesce(cardinality(p_metadata) = cardinality(p_args), true) THEN
        IF cardinality(p_args) = 1 THEN
            v_jobs := ARRAY[nextval('/*schema*/awa.job_id_seq')];
        ELSE
            v_jobs := ARRAY(SELECT nextval('/*schema*/awa.job_id_seq') FROM generate_series(1, cardinality(p_args)));
        END IF;
        -- As in enter_ready_slot. A transaction that ends with this call holds no slot before or behind it.
        IF p_wake IS NOT NULL THEN
            v_held := /*schema*/awa.held_ready_slot();
            IF v_held IS NOT NULL THEN
                v_slot := v_held;
                v_pointer := NULL;
            END IF;
        END IF;
        CASE v_slot
        -- each queue slot:
        WHEN 0/*slot*/ THEN
            v_is_stored := /*schema*/awa.append_at_once_0/*slot*/(
                v_pointer, p_queue, p_priority, v_jobs, p_args, p_kind, p_max_attempts, p_metadata,
                coalesce(p_now, clock_timestamp()));
        -- end each
        ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_slot, false);
        END CASE;
    END IF;
    IF NOT v_is_stored THEN
        -- The settings or the lane are not plain, or the ring has turned meanwhile.
        RETURN /*schema*/awa.enqueue_jobs(ARRAY[p_queue], ARRAY[p_priority], NULL, NULL, ARRAY[p_kind], p_args,
            ARRAY[p_max_attempts], p_metadata, NULL, NULL, p_wake, p_now, v_jobs);
    END IF;
    IF p_wake IS NOT NULL AND v_held IS NULL THEN
        PERFORM /*schema*/awa.hold_ready_slot(v_slot);
    END IF;
    IF p_wake IS NOT FALSE THEN
        -- An assignment, because PERFORM would start a statement for it.
        v_has_told := /*schema*/awa.wake_one(/*schema*/awa.wake_bucket(p_queue), p_wake IS NULL);
    END IF;
    RETURN v_jobs;
END
$awa$;
