-- Purpose: adds the history of one slot to the permanent counters, once for all: the slot is truncated in the same
--   transaction.
-- Parameters: none.
-- Returns: nothing.
-- Locks: ROW EXCLUSIVE on queue_counters; the children are locked already.
-- Caller: truncate_queue_slot.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.fold_counters_0/*slot*/() RETURNS void
LANGUAGE plpgsql VOLATILE SET jit = off AS $awa$
BEGIN
    INSERT INTO /*schema*/awa.queue_counters (jobs, state, queue)
    SELECT sum(f.jobs), f.state, f.queue
    FROM (SELECT l.queue, 'completed' AS state, c.jobs
          FROM (SELECT b.lane_id, sum(b.jobs) AS jobs FROM /*schema*/awa.receipt_completion_batches_0/*slot*/ AS b
                GROUP BY b.lane_id) AS c
          JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = c.lane_id
          UNION ALL
          SELECT d.queue, d.state, count(*) FROM /*schema*/awa.done_entries_0/*slot*/ AS d GROUP BY d.queue, d.state
          UNION ALL
          SELECT l.queue, 'cancelled', t.jobs
          FROM (SELECT b.lane_id, count(*) AS jobs FROM /*schema*/awa.ready_tombstones_0/*slot*/ AS b
                WHERE b.moved_at IS NULL GROUP BY b.lane_id) AS t
          JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = t.lane_id) AS f
    GROUP BY f.queue, f.state;
END
$awa$;
