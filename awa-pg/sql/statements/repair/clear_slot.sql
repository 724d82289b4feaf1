-- Purpose: removes everything from a slot of the queue ring but the rows that wait, which are moved next. Its history was
--   moved before. By DELETE, because the rows that wait are still there.
-- Parameters: slot.
-- Returns: nothing of interest.
-- Locks: ROW EXCLUSIVE on the slot's children.
-- Caller: repair.
WITH rows AS (
    DELETE FROM /*schema*/awa.ready_entries AS r
    WHERE r.ready_slot = $1::smallint
      AND NOT EXISTS (SELECT FROM /*schema*/awa.waiting_rows AS w
                      WHERE w.ready_slot = r.ready_slot AND w.lane_id = r.lane_id AND w.xid = r.xid AND w.job_id = r.job_id)
), cursors AS (
    DELETE FROM /*schema*/awa.ready_claim_attempt_batches AS b WHERE b.ready_slot = $1::smallint
), tombstones AS (
    DELETE FROM /*schema*/awa.ready_tombstones AS t WHERE t.ready_slot = $1::smallint
), completions AS (
    DELETE FROM /*schema*/awa.receipt_completion_batches AS c WHERE c.ready_slot = $1::smallint
), hidden AS (
    DELETE FROM /*schema*/awa.receipt_completion_tombstones AS h WHERE h.ready_slot = $1::smallint
)
SELECT 1
