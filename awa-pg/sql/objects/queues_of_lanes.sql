-- Purpose: which of many queues own one of these lanes and are not paused.
-- Parameters: lanes; queues.
-- Returns: the places (from 1) of those queues in the input, each once, ascending.
-- Locks: ACCESS SHARE on queue_lanes.
-- Caller: peek_queues.
CREATE OR REPLACE FUNCTION /*schema*/awa.queues_of_lanes(p_lanes bigint[], p_queues text[]) RETURNS integer[]
LANGUAGE plpgsql STABLE
-- Each lane is looked up; queues, of which there may be ten thousand, are not compared with each of them.
SET enable_nestloop = off AS $awa$
BEGIN
    RETURN ARRAY(
        SELECT DISTINCT q.o::integer
        FROM (SELECT DISTINCT f AS lane_id FROM unnest(p_lanes) AS f) AS w
        CROSS JOIN LATERAL (SELECT l.queue FROM /*schema*/awa.queue_lanes AS l
                            WHERE l.lane_id = w.lane_id AND NOT l.paused OFFSET 0) AS k
        JOIN unnest(p_queues) WITH ORDINALITY AS q (queue, o) ON q.queue = k.queue
        ORDER BY q.o::integer);
END
$awa$;
