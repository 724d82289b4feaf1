-- Purpose: the jobs that wait or run outside the rings, in the order in which they are due in their lane: a lease keeps the
--   place of its job for when it is handed back.
-- Columns: is_lease, lane_id, job_id, and run: rows of a lane with the same run are in order by job_id alone, and runs
--   follow each other from 0.
-- Parameters: none.
-- Returns: a row per job.
-- Locks: ACCESS SHARE on carried_entries and leases.
-- Caller: repair.
CREATE OR REPLACE VIEW /*schema*/awa.carried_runs AS
SELECT w.is_lease, w.lane_id, w.job_id,
       count(*) FILTER (WHERE w.job_id <= w.job_before) OVER (PARTITION BY w.lane_id ORDER BY w.xid, w.job_id) AS run
FROM (
    SELECT k.is_lease, k.lane_id, k.xid, k.job_id,
           lag(k.job_id) OVER (PARTITION BY k.lane_id ORDER BY k.xid, k.job_id) AS job_before
    FROM (SELECT false AS is_lease, c.lane_id, c.xid, c.job_id FROM /*schema*/awa.carried_entries AS c
          UNION ALL
          SELECT true, l.lane_id, l.xid, l.job_id FROM /*schema*/awa.leases AS l) AS k) AS w;
