-- Purpose: every member of every attempt batch that is still stored: which ready row a claim emitted, and under which
--   receipt.
-- Columns: ready_slot, lane_id, seq, batch_id, receipt_id, job_id, row_lease (lease of the ready row, so that a row is
--   known by (job_id, row_lease)), (first_xid, first_job), the first row of the batch, and
--   last_xid: from there an index finds each of its rows, beside millions of the same transaction.
-- Parameters: none.
-- Returns: a row per member.
-- Locks: ACCESS SHARE on ready_claim_attempt_batches.
-- Caller: the views jobs and terminal_jobs.
CREATE OR REPLACE VIEW /*schema*/awa.emitted_attempts AS
SELECT b.ready_slot, b.lane_id, b.seq, b.batch_id, (b.batch_id << 10) + m.index AS receipt_id, m.job_id,
       coalesce(b.run_leases[m.index], 0) AS row_lease,
       b.first_xid, coalesce(b.job_id, b.job_ids[1]) AS first_job, coalesce(b.last_xid, b.first_xid) AS last_xid
FROM /*schema*/awa.ready_claim_attempt_batches AS b
CROSS JOIN LATERAL unnest(coalesce(b.job_ids, ARRAY[b.job_id])) WITH ORDINALITY AS m (job_id, index)
WHERE b.batch_id IS NOT NULL;
