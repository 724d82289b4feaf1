-- Purpose: all queues with exact counts. A function, because compiling the
--   plans of the large views costs seconds, and only a function can forbid it.
-- Parameters: none.
-- Returns: queue, paused, and the numbers of ready, running, deferred, finished, dead and waiting jobs; by name.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: Operator::queues.
CREATE OR REPLACE FUNCTION /*schema*/awa.list_queues()
RETURNS TABLE (queue text, paused boolean, ready bigint, running bigint, deferred bigint, finished bigint, dead bigint,
    waiting bigint)
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    -- Each statement of a volatile function has a snapshot of its own, taken when all that it reads is locked: with an older
    -- one, jobs that went on elsewhere would be missed when their slots were truncated before it came to them.
    RETURN QUERY
    SELECT q.queue, coalesce(bool_or(q.paused), false), sum(q.ready)::bigint,
           sum(q.running)::bigint, sum(q.deferred)::bigint, sum(q.finished)::bigint,
           sum(q.dead)::bigint, sum(q.waiting)::bigint
    FROM (SELECT l.queue, l.paused, 0 AS ready, 0 AS running, 0 AS deferred, 0 AS finished, 0 AS dead,
                 0 AS waiting
          FROM /*schema*/awa.queue_lanes AS l
          UNION ALL
          SELECT j.queue, NULL, count(*) FILTER (WHERE j.state = 'ready'),
                 count(*) FILTER (WHERE j.state = 'running'),
                 count(*) FILTER (WHERE j.state = 'deferred'),
                 count(*) FILTER (WHERE j.state IN ('completed', 'failed', 'cancelled')),
                 count(*) FILTER (WHERE j.state = 'dead'),
                 count(*) FILTER (WHERE j.state = 'waiting')
          FROM /*schema*/awa.jobs AS j GROUP BY j.queue) AS q
    GROUP BY q.queue ORDER BY q.queue;
END
$awa$;
