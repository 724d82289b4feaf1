-- Purpose: how many jobs of each queue have ended in each way, as far as it shows without looking at single jobs: by the
--   permanent counters, and by the history that is still stored.
-- Columns: queue, state, stored (of the history that is still there, what was deleted included), counted (before that).
-- Parameters: none.
-- Returns: several rows per queue and state, to be summed up.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: the statements that count.
CREATE OR REPLACE VIEW /*schema*/awa.ended_jobs AS
SELECT c.queue, c.state, 0::bigint AS stored, c.jobs AS counted FROM /*schema*/awa.queue_counters AS c
UNION ALL
SELECT l.queue, 'completed', b.jobs, 0
FROM (SELECT c.lane_id, sum(c.jobs) AS jobs FROM /*schema*/awa.receipt_completion_batches AS c GROUP BY c.lane_id) AS b
JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = b.lane_id
UNION ALL
SELECT d.queue, d.state, count(*), 0 FROM /*schema*/awa.done_entries AS d GROUP BY d.queue, d.state
UNION ALL
SELECT l.queue, 'cancelled', b.jobs, 0
FROM (SELECT t.lane_id, count(*) AS jobs FROM /*schema*/awa.ready_tombstones AS t GROUP BY t.lane_id) AS b
JOIN /*schema*/awa.queue_lanes AS l ON l.lane_id = b.lane_id;
