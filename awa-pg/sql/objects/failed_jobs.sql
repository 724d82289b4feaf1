-- Purpose: jobs that failed for good in a queue without a dead-letter queue, and that nobody has tried again: a retry hides the
--   row of done_entries, which is never changed, by a row of receipt_completion_tombstones of its slot.
-- Columns: those of done_entries that a retry needs.
-- Parameters: none.
-- Returns: a row per job whose history is retained.
-- Locks: ACCESS SHARE on the tables read.
-- Caller: take_key_again, take_held_job.
CREATE OR REPLACE VIEW /*schema*/awa.failed_jobs AS
SELECT d.done_slot, d.job_id, d.run_lease, d.created_at, d.priority, d.shard, d.max_attempts, d.queue, d.kind, d.args,
       d.metadata, d.error, d.unique_key, d.unique_states
FROM /*schema*/awa.done_entries AS d
WHERE d.state = 'failed'
  AND NOT EXISTS (SELECT FROM /*schema*/awa.receipt_completion_tombstones AS t
                  WHERE t.ready_slot = d.done_slot AND t.job_id = d.job_id AND t.run_lease = d.run_lease);
