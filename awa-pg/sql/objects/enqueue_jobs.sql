-- Purpose: stores jobs, in the caller's transaction or in one of its own. Blocks nobody and waits for nobody.
-- Parameters: the distinct lanes (parallel arrays queue, priority, shard; shards NULL: as set for the queues, see
--   spread_lanes); then parallel arrays with one element per job: lane as an index from 1 into the lanes (NULL: all in the first), kind (one element alone serves all), args,
--   attempt budget (likewise), metadata (NULL: none), earliest start as an absolute time and as microseconds from now
--   (NULL: at once); whether to wake sleeping dispatchers (false for transactions that will be prepared; NULL: yes, and
--   this call is a transaction of its own); the present
--   for tests; the ids of the jobs, drawn before (NULL: they are drawn now); the numbers of their ordering keys, used where
--   shards is NULL (NULL for one or for all: none).
-- Returns: the job ids, in input order.
-- Locks: ROW EXCLUSIVE on one child of ready_entries.
-- Caller: Producer::enqueue, enqueue_at_once, enqueue_unique_jobs, enqueue in a driver's transaction, other languages.
CREATE OR REPLACE FUNCTION /*schema*/awa.enqueue_jobs(
    p_queues text[], p_priorities smallint[], p_shards smallint[], p_lane_of_job smallint[], p_kinds text[],
    p_args json[], p_max_attempts smallint[], p_metadata json[], p_run_at timestamptz[], p_delay_us bigint[],
    p_wake boolean DEFAULT true, p_now timestamptz DEFAULT NULL, p_jobs bigint[] DEFAULT NULL,
    p_orders integer[] DEFAULT NULL)
RETURNS bigint[] LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan AS $awa$
DECLARE
    v_now   timestamptz := coalesce(p_now, clock_timestamp());
    v_count integer := cardinality(p_args);
    v_lanes bigint[];
    v_jobs  bigint[] := p_jobs;
    v_due   boolean[];
    v_slot  smallint;
    v_to    record;
BEGIN
    IF EXISTS (SELECT FROM unnest(p_kinds) AS k WHERE octet_length(k) NOT BETWEEN 1 AND 200) OR 1 > ANY (p_max_attempts) THEN
        RAISE EXCEPTION 'a job has a kind that is empty or longer than 200 bytes, or fewer than one attempt'
            USING ERRCODE = 'AW003', CONSTRAINT = 'AW003',
                HINT = 'change that job; nothing of the call was stored';
    END IF;
    PERFORM /*schema*/awa.assert_same_cluster();
    IF coalesce(cardinality(p_priorities) <> cardinality(p_queues) OR cardinality(p_shards) <> cardinality(p_queues)
                OR cardinality(p_kinds) NOT IN (1, v_count) OR cardinality(p_max_attempts) NOT IN (1, v_count)
                OR v_count <> ANY (ARRAY[coalesce(cardinality(p_lane_of_job), v_count),
                       coalesce(cardinality(p_metadata), v_count), coalesce(cardinality(p_run_at), v_count),
                       coalesce(cardinality(p_delay_us), v_count), coalesce(cardinality(p_jobs), v_count),
                       coalesce(cardinality(p_orders), v_count)])
                OR 1 > ANY (p_lane_of_job) OR cardinality(p_queues) < ANY (p_lane_of_job), false) THEN
        RAISE EXCEPTION 'the arrays of % jobs in % lanes do not fit each other', v_count, cardinality(p_queues)
            USING ERRCODE = 'AW003', CONSTRAINT = 'AW003',
                HINT = 'each array has an element per job, or one for all where that is allowed';
    END IF;
    IF v_jobs IS NULL THEN
        v_jobs := ARRAY(SELECT nextval('/*schema*/awa.job_id_seq') FROM generate_series(1, v_count));
    END IF;
    IF p_shards IS NULL THEN
        SELECT s.queues, s.priorities, s.shards, s.lane_of_job INTO v_to
        FROM /*schema*/awa.spread_lanes(p_queues, p_priorities, v_jobs, p_lane_of_job, p_orders) AS s;
    ELSE
        SELECT p_queues AS queues, p_priorities AS priorities, p_shards AS shards, p_lane_of_job AS lane_of_job INTO v_to;
    END IF;
    FOR v_lane IN 1..cardinality(v_to.queues) LOOP
        v_lanes[v_lane] := /*schema*/awa.lane_id(v_to.queues[v_lane], v_to.priorities[v_lane], v_to.shards[v_lane]);
        PERFORM FROM /*schema*/awa.queue_lanes AS l WHERE l.lane_id = v_lanes[v_lane];
        IF NOT FOUND THEN
            -- A bad hint would keep maintenance from making any lane.
            IF coalesce(octet_length(v_to.queues[v_lane]) NOT BETWEEN 1 AND 200 OR v_to.priorities[v_lane] NOT BETWEEN 1 AND 4
                        OR v_to.shards[v_lane] < 0, true) THEN
                RAISE EXCEPTION 'queue % with priority % and shard % is no lane',
                        v_to.queues[v_lane], v_to.priorities[v_lane], v_to.shards[v_lane] USING ERRCODE = 'AW003', CONSTRAINT = 'AW003',
                    HINT = 'a queue has 1 to 200 bytes, a priority is 1 to 4, a shard is at least 0';
            END IF;
            INSERT INTO /*schema*/awa.lane_hints (lane_id, priority, shard, queue)
            VALUES (v_lanes[v_lane], v_to.priorities[v_lane], v_to.shards[v_lane], v_to.queues[v_lane]);
        END IF;
    END LOOP;
    IF p_run_at IS NOT NULL OR p_delay_us IS NOT NULL THEN
        PERFORM /*schema*/awa.defer_new_jobs(v_to.queues, v_to.priorities, v_to.shards, v_jobs, v_to.lane_of_job, p_kinds, p_args,
            p_max_attempts, p_metadata, p_run_at, p_delay_us, v_now);
        -- The opposite of what defer_new_jobs has stored: each job goes one of the two ways.
        SELECT array_agg(coalesce(at, v_now + us * interval '1 microsecond', v_now) <= v_now ORDER BY o) INTO v_due
        FROM unnest(v_jobs, p_run_at, p_delay_us) WITH ORDINALITY AS j (job, at, us, o);
        IF NOT true = ANY (v_due) THEN
            RETURN v_jobs;
        END IF;
    END IF;
    v_slot := /*schema*/awa.enter_ready_slot();
    IF v_due IS NULL THEN
        PERFORM /*schema*/awa.append_ready(v_slot, v_jobs,
            CASE WHEN v_to.lane_of_job IS NULL THEN v_lanes[1:1]
                 ELSE ARRAY(SELECT v_lanes[i] FROM unnest(v_to.lane_of_job) WITH ORDINALITY AS t (i, o) ORDER BY o) END,
            p_kinds, p_args, p_max_attempts, p_metadata, NULL, NULL, NULL, NULL, v_now);
    ELSE
        PERFORM /*schema*/awa.append_ready(v_slot, array_agg(j.job ORDER BY j.o),
            array_agg(v_lanes[coalesce(j.lane, 1)] ORDER BY j.o), array_agg(coalesce(j.kind, p_kinds[1]) ORDER BY j.o),
            array_agg(j.args ORDER BY j.o), array_agg(coalesce(j.max_attempts, p_max_attempts[1]) ORDER BY j.o),
            array_agg(j.metadata ORDER BY j.o), NULL, NULL, NULL, NULL, v_now)
        FROM unnest(v_jobs, v_to.lane_of_job, p_kinds, p_args, p_max_attempts, p_metadata, v_due)
            WITH ORDINALITY AS j (job, lane, kind, args, max_attempts, metadata, due, o)
        WHERE j.due;
    END IF;
    IF p_wake IS NOT FALSE THEN
        PERFORM /*schema*/awa.wake(v_to.queues, p_wake IS NULL);
    END IF;
    RETURN v_jobs;
END
$awa$;
