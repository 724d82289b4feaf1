-- Purpose: appends new ready rows of one lane to one slot, if the ring still stands there. Locking the child, looking at the
--   pointer behind that and writing are one statement: its locks are taken before it reads, and what a sequence holds is read as
--   it is, not as a snapshot has it.
-- Parameters: where the ring must stand (NULL: anywhere, because the transaction holds the slot already); queue and
--   priority, of whose lanes the one with shard 0 is meant; ids and arguments, one element per job; kind and attempt budget of
--   all; metadata, one element per job (NULL: none); the present.
-- Returns: false when nothing was written: the ring has turned, or the lane does not exist.
-- Locks: ROW EXCLUSIVE on the child of ready_entries, also when nothing was written.
-- Caller: enqueue_at_once.
-- per slot of: queue ring
CREATE OR REPLACE FUNCTION /*schema*/awa.append_at_once_0/*slot*/(
    p_pointer bigint, p_queue text, p_priority smallint, p_jobs bigint[], p_args json[], p_kind text,
    p_max_attempts smallint, p_metadata json[], p_now timestamptz)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    INSERT INTO /*schema*/awa.ready_entries_0/*slot*/ (
        lane_id, xid, job_id, created_at, ready_slot, max_attempts, kind, args, metadata)
    SELECT l.lane_id, pg_current_xact_id(), j.job, p_now, 0/*slot*/, p_max_attempts, p_kind, j.args, j.metadata
    FROM /*schema*/awa.queue_lanes AS l
    CROSS JOIN unnest(p_jobs, p_args, p_metadata) AS j (job, args, metadata)
    WHERE l.queue = p_queue AND l.priority = p_priority AND l.shard = 0
      AND (p_pointer IS NULL OR (SELECT p.last_value FROM /*schema*/awa.queue_ring_pointer AS p) = p_pointer);
    RETURN FOUND;
END
$awa$;
