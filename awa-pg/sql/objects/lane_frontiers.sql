-- Purpose: the cursor of each lane in each slot: the attempt batch with the highest sequence.
-- Columns: ready_slot, lane_id, seq, seen, part_xids, part_jobs.
-- Parameters: none.
-- Returns: a row per lane and slot that a claim has looked at.
-- Locks: ACCESS SHARE on ready_claim_attempt_batches.
-- Caller: the views jobs and waiting_rows.
CREATE OR REPLACE VIEW /*schema*/awa.lane_frontiers AS
SELECT DISTINCT ON (b.ready_slot, b.lane_id)
       b.ready_slot, b.lane_id, b.seq, b.seen, b.part_xids, b.part_jobs
FROM /*schema*/awa.ready_claim_attempt_batches AS b
ORDER BY b.ready_slot, b.lane_id, b.seq DESC;
