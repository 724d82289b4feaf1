-- Purpose: counts jobs by queue and state, one by one. A function, because compiling the
--   plans of the large views costs seconds, and only a function can forbid it.
-- Parameters: none.
-- Returns: queue, paused, state (NULL in a row that only names the queue), jobs in that state, jobs that ever ended in it.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: Operator::counts.
CREATE OR REPLACE FUNCTION /*schema*/awa.count_jobs()
RETURNS TABLE (queue text, paused boolean, state text, jobs bigint, ever bigint)
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    -- Each statement of a volatile function has a snapshot of its own, taken when all that it reads is locked: with an older
    -- one, jobs that went on elsewhere would be missed when their slots were truncated before it came to them.
    RETURN QUERY
    SELECT c.queue, coalesce(bool_or(p.paused), false), c.state, sum(c.jobs)::bigint,
           sum(c.ever)::bigint
    FROM (SELECT l.queue, NULL AS state, 0 AS jobs, 0 AS ever FROM /*schema*/awa.queue_lanes AS l
          UNION ALL
          SELECT j.queue, j.state, count(*), 0 FROM /*schema*/awa.jobs AS j GROUP BY j.queue, j.state
          UNION ALL
          SELECT e.queue, e.state, 0, e.stored + e.counted FROM /*schema*/awa.ended_jobs AS e) AS c
    LEFT JOIN (SELECT l.queue, bool_or(l.paused) AS paused FROM /*schema*/awa.queue_lanes AS l GROUP BY l.queue) AS p
        ON p.queue = c.queue
    GROUP BY c.queue, c.state ORDER BY c.queue;
END
$awa$;
