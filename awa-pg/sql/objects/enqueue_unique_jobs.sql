-- Purpose: stores those of some jobs whose keys nobody holds, in the caller's transaction or in one of its own.
-- Parameters: as enqueue_jobs, but for the last two; then parallel arrays, one element per job: key (NULL: not unique),
--   length of its period in microseconds (NULL for all or for one: none), states in which the key is held (see
--   unique_claims), whether it replaces a job that waits (NULL for all: none does); whether to wake sleeping dispatchers (as enqueue_jobs); the present for tests; the
--   numbers of ordering keys, as enqueue_jobs.
-- Returns: per job, in input order, the id of the job that stands for it, whether it is a new one, and the job that
--   it has replaced, or NULL (NULL for all where none was to).
-- Locks: as take_unique_keys, replace_waiting_jobs and enqueue_jobs.
-- Caller: Producer::enqueue, enqueue in a driver's transaction, other languages.
CREATE OR REPLACE FUNCTION /*schema*/awa.enqueue_unique_jobs(
    p_queues text[], p_priorities smallint[], p_shards smallint[], p_lane_of_job smallint[], p_kinds text[],
    p_args json[], p_max_attempts smallint[], p_metadata json[], p_run_at timestamptz[], p_delay_us bigint[],
    p_keys bytea[], p_periods_us bigint[], p_states smallint[], p_replaces boolean[],
    p_wake boolean DEFAULT true, p_now timestamptz DEFAULT NULL, p_orders integer[] DEFAULT NULL, OUT jobs bigint[], OUT are_new boolean[],
    OUT replaced bigint[])
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $awa$
DECLARE
    v_now  timestamptz := coalesce(p_now, clock_timestamp());
    v_ids  bigint[];
    v_keys bytea[];
BEGIN
    IF coalesce(cardinality(p_keys) <> cardinality(p_args) OR cardinality(p_states) <> cardinality(p_args)
                OR coalesce(cardinality(p_periods_us), cardinality(p_args)) <> cardinality(p_args)
                OR coalesce(cardinality(p_replaces), cardinality(p_args)) <> cardinality(p_args), true) THEN
        RAISE EXCEPTION 'the arrays of the keys of % jobs do not fit', cardinality(p_args)
            USING ERRCODE = 'AW003', CONSTRAINT = 'AW003',
                HINT = 'each array has an element per job';
    END IF;
    v_ids := ARRAY(SELECT nextval('/*schema*/awa.job_id_seq') FROM generate_series(1, cardinality(p_args)));
    v_keys := ARRAY(
        SELECT CASE WHEN k.period_us IS NULL THEN k.key
                    ELSE k.key || int8send(floor(extract(epoch FROM v_now) * 1000000 / k.period_us)::bigint) END
        FROM unnest(p_keys, p_periods_us) WITH ORDINALITY AS k (key, period_us, o) ORDER BY k.o);
    IF true = ANY (p_replaces) THEN
        SELECT r.holders, r.replaced INTO jobs, replaced
        FROM /*schema*/awa.replace_waiting_jobs(v_keys, v_ids, p_states, p_replaces, v_now) AS r;
    ELSE
        jobs := /*schema*/awa.take_unique_keys(v_keys, v_ids, p_states);
    END IF;
    are_new := ARRAY(SELECT h.holder = h.id FROM unnest(jobs, v_ids) WITH ORDINALITY AS h (holder, id, o) ORDER BY h.o);
    IF NOT false = ANY (are_new) THEN
        PERFORM /*schema*/awa.enqueue_jobs(p_queues, p_priorities, p_shards, p_lane_of_job, p_kinds, p_args,
            p_max_attempts, p_metadata, p_run_at, p_delay_us, p_wake, v_now, v_ids, p_orders);
    ELSIF true = ANY (are_new) THEN
        PERFORM /*schema*/awa.enqueue_jobs(p_queues, p_priorities, p_shards,
            array_agg(coalesce(j.lane, 1::smallint) ORDER BY j.o), array_agg(coalesce(j.kind, p_kinds[1]) ORDER BY j.o),
            array_agg(j.args ORDER BY j.o), array_agg(coalesce(j.max_attempts, p_max_attempts[1]) ORDER BY j.o),
            CASE WHEN p_metadata IS NOT NULL THEN array_agg(j.metadata ORDER BY j.o) END,
            CASE WHEN p_run_at IS NOT NULL THEN array_agg(j.run_at ORDER BY j.o) END,
            CASE WHEN p_delay_us IS NOT NULL THEN array_agg(j.delay_us ORDER BY j.o) END,
            p_wake, v_now, array_agg(j.id ORDER BY j.o), CASE WHEN p_orders IS NOT NULL THEN array_agg(j.number ORDER BY j.o) END)
        FROM unnest(v_ids, are_new, p_lane_of_job, p_kinds, p_args, p_max_attempts, p_metadata, p_run_at, p_delay_us,
                    p_orders)
            WITH ORDINALITY AS j (id, is_new, lane, kind, args, max_attempts, metadata, run_at, delay_us, number, o)
        WHERE j.is_new;
    END IF;
END
$awa$;
