-- Purpose: counts jobs by queue and state without looking at single ones, but for those that wait: of them at most so many
--   are counted per slot.
-- Parameters: stop counting the ready jobs of a slot at so many.
-- Returns: as count_jobs.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: Operator::counts.
CREATE OR REPLACE FUNCTION /*schema*/awa.estimate_jobs(p_most bigint)
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
          SELECT coalesce(l.queue, h.queue), 'ready', w.waiting, 0
          FROM /*schema*/awa.queue_ring_slots AS s
          CROSS JOIN LATERAL /*schema*/awa.waiting_lanes(s.slot, p_most) AS w
          LEFT JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = w.lane_id
          LEFT JOIN LATERAL (
              SELECT n.queue FROM /*schema*/awa.lane_hints AS n WHERE l.lane_id IS NULL AND n.lane_id = w.lane_id LIMIT 1
          ) AS h ON true
          WHERE s.state IN ('open', 'sealed')
          UNION ALL
          SELECT l.queue, 'ready', n.jobs, 0
          FROM (SELECT e.lane_id, count(*) AS jobs FROM /*schema*/awa.carried_entries AS e GROUP BY e.lane_id) AS n
          JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = n.lane_id
          UNION ALL
          SELECT r.queue, r.state, r.jobs, 0 FROM /*schema*/awa.running_jobs AS r
          UNION ALL
          SELECT d.queue, 'deferred', count(*), 0 FROM /*schema*/awa.deferred_jobs AS d GROUP BY d.queue
          UNION ALL
          SELECT q.queue, 'dead', count(*), 0 FROM /*schema*/awa.dlq_entries AS q GROUP BY q.queue
          UNION ALL
          SELECT e.queue, e.state, e.stored, e.stored + e.counted FROM /*schema*/awa.ended_jobs AS e) AS c
    LEFT JOIN (SELECT l.queue, bool_or(l.paused) AS paused FROM /*schema*/awa.queue_lanes AS l GROUP BY l.queue) AS p
        ON p.queue = c.queue
    GROUP BY c.queue, c.state ORDER BY c.queue;
END
$awa$;
