-- Purpose: all queues with exact counts.
-- Parameters: none.
-- Returns: queue, paused, and the numbers of ready, running, deferred, finished, dead and waiting jobs; by name.
-- Locks: ACCESS SHARE on everything.
-- Caller: Operator::queues.
SELECT q.queue, coalesce(pg_catalog.bool_or(q.paused), false), pg_catalog.sum(q.ready)::bigint,
       pg_catalog.sum(q.running)::bigint, pg_catalog.sum(q.deferred)::bigint, pg_catalog.sum(q.finished)::bigint,
       pg_catalog.sum(q.dead)::bigint, pg_catalog.sum(q.waiting)::bigint
FROM (SELECT l.queue, l.paused, 0 AS ready, 0 AS running, 0 AS deferred, 0 AS finished, 0 AS dead,
             0 AS waiting
      FROM /*schema*/awa.queue_lanes AS l
      UNION ALL
      SELECT j.queue, NULL, pg_catalog.count(*) FILTER (WHERE j.state = 'ready'),
             pg_catalog.count(*) FILTER (WHERE j.state = 'running'),
             pg_catalog.count(*) FILTER (WHERE j.state = 'deferred'),
             pg_catalog.count(*) FILTER (WHERE j.state IN ('completed', 'failed', 'cancelled')),
             pg_catalog.count(*) FILTER (WHERE j.state = 'dead'),
             pg_catalog.count(*) FILTER (WHERE j.state = 'waiting')
      FROM /*schema*/awa.jobs AS j GROUP BY j.queue) AS q
GROUP BY q.queue ORDER BY q.queue
