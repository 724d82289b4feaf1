-- Purpose: which lanes the new jobs of an enqueue call go to, by what is set for their queues: those with an ordering key to
--   the shard of the key, the others to shards in turn.
-- Parameters: the distinct pairs of queue and priority; per job, in input order: its id, its pair as an index from 1 (NULL: all
--   have the first), the number of its ordering key (NULL for one or for all: none).
-- Returns: the distinct lanes, as parallel arrays; per job, in input order, its lane as an index from 1, or NULL: all in the
--   first.
-- Locks: none. queue_settings is opened only while something is set.
-- Caller: enqueue_jobs.
-- depends on: shard_of_key
CREATE OR REPLACE FUNCTION /*schema*/awa.spread_lanes(
    p_queues text[], p_priorities smallint[], p_jobs bigint[], p_lane_of_job smallint[], p_orders integer[],
    OUT queues text[], OUT priorities smallint[], OUT shards smallint[], OUT lane_of_job smallint[])
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_counts smallint[];
BEGIN
    queues := p_queues;
    priorities := p_priorities;
    lane_of_job := p_lane_of_job;
    shards := array_fill(0::smallint, ARRAY[cardinality(p_queues)]);
    IF pg_relation_size('/*schema*/awa.queue_settings') = 0 THEN
        RETURN;
    END IF;
    v_counts := ARRAY(
        SELECT coalesce(s.enqueue_shards, 1::smallint)
        FROM unnest(p_queues) WITH ORDINALITY AS q (queue, o)
        LEFT JOIN /*schema*/awa.queue_settings AS s ON s.queue = q.queue ORDER BY q.o);
    IF 1 = ALL (v_counts) THEN
        RETURN;
    END IF;
    WITH placed AS MATERIALIZED (
        SELECT j.o, p.i, CASE WHEN p.shards = 1 THEN 0::smallint
                              WHEN j.number IS NULL THEN mod(j.job, p.shards::bigint)::smallint
                              ELSE /*schema*/awa.shard_of_key(j.number, p.shards) END AS shard
        FROM unnest(p_jobs, p_lane_of_job, p_orders) WITH ORDINALITY AS j (job, lane, number, o)
        JOIN unnest(v_counts) WITH ORDINALITY AS p (shards, i) ON p.i = coalesce(j.lane, 1)
    ), lanes AS MATERIALIZED (
        SELECT d.i, d.shard, row_number() OVER (ORDER BY d.i, d.shard) AS n
        FROM (SELECT DISTINCT p.i, p.shard FROM placed AS p) AS d
    )
    SELECT (SELECT array_agg(q.queue ORDER BY l.n) FROM lanes AS l
            JOIN unnest(p_queues) WITH ORDINALITY AS q (queue, i) ON q.i = l.i),
           (SELECT array_agg(p_priorities[l.i] ORDER BY l.n) FROM lanes AS l),
           (SELECT array_agg(l.shard ORDER BY l.n) FROM lanes AS l),
           (SELECT array_agg(l.n::smallint ORDER BY p.o) FROM placed AS p
            JOIN lanes AS l ON l.i = p.i AND l.shard = p.shard)
    INTO queues, priorities, shards, lane_of_job;
END
$awa$;
