-- Purpose: the lane of the same shard that differs from a lane in its queue, its priority or both. Makes it if it is not there.
-- Parameters: lane; queue and priority, each NULL: as of the lane.
-- Returns: the lane with its parts; all NULL when nobody knows the first lane.
-- Locks: as open_queue.
-- Caller: move_carried, move_in_ring.
CREATE OR REPLACE FUNCTION /*schema*/awa.lane_beside(
    p_lane bigint, p_queue text, p_priority smallint,
    OUT lane_id bigint, OUT queue text, OUT priority smallint, OUT shard smallint)
LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    SELECT coalesce(p_queue, l.queue), coalesce(p_priority, l.priority), l.shard INTO queue, priority, shard
    FROM (SELECT n.queue, n.priority, n.shard FROM /*schema*/awa.queue_lanes AS n WHERE n.lane_id = p_lane
          UNION ALL
          -- A lane that an enqueue did not find, and that maintenance has yet to make.
          SELECT h.queue, h.priority, h.shard FROM /*schema*/awa.lane_hints AS h WHERE h.lane_id = p_lane LIMIT 1) AS l;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM /*schema*/awa.open_queue(queue, shard);
    lane_id := /*schema*/awa.lane_id(queue, priority, shard);
END
$awa$;
