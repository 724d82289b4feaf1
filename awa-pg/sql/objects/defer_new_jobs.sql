-- Purpose: stores those new jobs of an enqueue call that are not due yet.
-- Parameters: as enqueue_jobs, with the ids drawn and the present known.
-- Returns: nothing.
-- Locks: none.
-- Caller: enqueue_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.defer_new_jobs(
    p_queues text[], p_priorities smallint[], p_shards smallint[], p_jobs bigint[], p_lane_of_job smallint[],
    p_kinds text[], p_args json[], p_max_attempts smallint[], p_metadata json[], p_run_at timestamptz[],
    p_delay_us bigint[], p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    INSERT INTO /*schema*/awa.deferred_jobs (
        job_id, run_lease, run_at, created_at, priority, shard, attempt, max_attempts, reason, queue, kind, args, metadata)
    SELECT j.job, 0, d.run_at, p_now, p_priorities[d.lane], p_shards[d.lane], 0,
           coalesce(j.max_attempts, p_max_attempts[1]), 'scheduled', p_queues[d.lane], coalesce(j.kind, p_kinds[1]),
           j.args, j.metadata
    FROM unnest(p_jobs, p_lane_of_job, p_kinds, p_args, p_max_attempts, p_metadata, p_run_at, p_delay_us)
        AS j (job, lane, kind, args, max_attempts, metadata, run_at, delay_us),
    LATERAL (SELECT coalesce(j.lane, 1) AS lane,
                    coalesce(j.run_at, p_now + j.delay_us * interval '1 microsecond') AS run_at) AS d
    WHERE d.run_at > p_now;
END
$awa$;
