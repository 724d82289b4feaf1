-- Purpose: makes jobs ready that had been elsewhere, and wakes their queues.
-- Parameters: parallel arrays, one element per job: id, queue, priority, shard, kind, args, attempt budget, metadata, when
--   it was first enqueued, attempts so far, lease so far, last error; the present.
-- Returns: nothing.
-- Locks: ROW EXCLUSIVE on one child of ready_entries.
-- Caller: promote_due, retry_jobs, move_carried, move_in_ring.
CREATE OR REPLACE FUNCTION /*schema*/awa.append_again(
    p_jobs bigint[], p_queues text[], p_priorities smallint[], p_shards smallint[], p_kinds text[], p_args json[],
    p_max_attempts smallint[], p_metadata json[], p_created timestamptz[], p_attempts smallint[], p_leases bigint[],
    p_errors text[], p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_lanes bigint[];
BEGIN
    PERFORM /*schema*/awa.assert_same_cluster();
    v_lanes := ARRAY(
        SELECT /*schema*/awa.lane_id(j.queue, j.priority, j.shard)
        FROM unnest(p_queues, p_priorities, p_shards) WITH ORDINALITY AS j (queue, priority, shard, o) ORDER BY j.o);
    INSERT INTO /*schema*/awa.lane_hints (lane_id, priority, shard, queue)
    SELECT DISTINCT h.lane, h.priority, h.shard, h.queue
    FROM unnest(v_lanes, p_priorities, p_shards, p_queues) AS h (lane, priority, shard, queue)
    WHERE NOT EXISTS (SELECT FROM /*schema*/awa.queue_lanes AS l WHERE l.lane_id = h.lane);
    PERFORM /*schema*/awa.append_ready(/*schema*/awa.enter_ready_slot(), p_jobs, v_lanes, p_kinds, p_args, p_max_attempts,
        p_metadata, p_created, p_attempts, p_leases, p_errors, p_now);
    PERFORM /*schema*/awa.wake(p_queues);
END
$awa$;
