-- Purpose: carries the failed jobs of a slot that is about to be truncated into the open one, with the keys that a retry takes
--   again: those that nobody has deleted or tried again, the youngest first, as far as their time and room go. Mirrors
--   RetentionPolicy::carried_forward of awa-core.
-- Parameters: the slot; jobs that failed after this; at most so many bytes of arguments, metadata and errors.
-- Returns: how many were carried.
-- Locks: as enter_done_slot; ROW EXCLUSIVE on queue_counters. The children of the slot are locked already.
-- Caller: truncate_queue_slot.
-- depends on: failed_jobs
CREATE OR REPLACE FUNCTION /*schema*/awa.carry_failed(p_slot smallint, p_after timestamptz, p_max_bytes bigint)
RETURNS integer LANGUAGE plpgsql VOLATILE SET jit = off AS $awa$
DECLARE
    v_to      smallint;
    v_carried integer;
BEGIN
    IF NOT EXISTS (SELECT FROM /*schema*/awa.failed_jobs AS f WHERE f.done_slot = p_slot) THEN
        RETURN 0;
    END IF;
    v_to := /*schema*/awa.enter_done_slot();
    WITH failed AS (
        SELECT d.job_id, d.run_lease, d.created_at, d.claimed_at, d.finalized_at, d.priority, d.shard, d.attempt,
               d.max_attempts, d.state, d.queue, d.kind, d.args, d.metadata, d.result, d.error, d.unique_key, d.unique_states,
               sum(octet_length(d.args::text) + coalesce(octet_length(d.metadata::text), 0)
                   + coalesce(octet_length(d.error), 0))
                   OVER (ORDER BY d.finalized_at DESC, d.job_id DESC ROWS UNBOUNDED PRECEDING) AS bytes
        FROM /*schema*/awa.failed_jobs AS f
        JOIN /*schema*/awa.done_entries AS d ON d.done_slot = p_slot AND d.job_id = f.job_id AND d.run_lease = f.run_lease
        WHERE f.done_slot = p_slot AND d.finalized_at > p_after
    ), carried AS (
        INSERT INTO /*schema*/awa.done_entries (
            job_id, run_lease, created_at, claimed_at, finalized_at, done_slot, priority, shard, attempt, max_attempts,
            state, queue, kind, args, metadata, result, error, unique_key, unique_states)
        SELECT f.job_id, f.run_lease, f.created_at, f.claimed_at, f.finalized_at, v_to, f.priority, f.shard, f.attempt,
               f.max_attempts, f.state, f.queue, f.kind, f.args, f.metadata, f.result, f.error, f.unique_key, f.unique_states
        FROM failed AS f WHERE f.bytes <= p_max_bytes
        RETURNING queue
    ), uncounted AS (
        -- They were counted with the slot, and will be counted again with the one that they are in now.
        INSERT INTO /*schema*/awa.queue_counters (jobs, state, queue)
        SELECT -count(*), 'failed', c.queue FROM carried AS c GROUP BY c.queue
    )
    SELECT count(*) INTO v_carried FROM carried AS c;
    RETURN v_carried;
END
$awa$;
