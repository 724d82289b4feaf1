-- Purpose: what waits in a slot of the queue ring, and whether it would overtake something if it were carried over.
-- Parameters: slot, stop counting at so many rows.
-- Returns: the number of rows; whether a lane of them has rows in an older sealed slot, or is not known yet.
-- Locks: as waiting_lanes.
-- Caller: Maintainer::unpin.
SELECT coalesce(pg_catalog.sum(w.waiting), 0)::bigint,
       coalesce(pg_catalog.bool_or(l.lane_id IS NULL OR w.lane_id IN (
           SELECT n.lane_id FROM /*schema*/awa.queue_ring_slots AS o
           CROSS JOIN LATERAL /*schema*/awa.waiting_lanes(o.slot, 9223372036854775807) AS n
           WHERE o.state = 'sealed'
             AND o.generation < (SELECT s.generation FROM /*schema*/awa.queue_ring_slots AS s WHERE s.slot = $1::smallint))),
           false)
FROM /*schema*/awa.waiting_lanes($1::smallint, $2::bigint) AS w
LEFT JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = w.lane_id
