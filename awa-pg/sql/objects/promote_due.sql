-- Purpose: makes due deferred jobs ready: they join the tail of their lanes.
-- Parameters: at most so many; the present for tests.
-- Returns: how many were promoted, and whether the call stopped at a limit: its own, or 64 MB of jobs. Jobs that somebody
--   else holds are passed over.
-- Locks: the promoted rows of deferred_jobs; ROW EXCLUSIVE on one child of ready_entries.
-- Caller: Maintainer::promote.
CREATE OR REPLACE FUNCTION /*schema*/awa.promote_due(
    p_limit integer, p_now timestamptz DEFAULT NULL, OUT jobs integer, OUT more boolean)
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $awa$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_due record;
BEGIN
    WITH due AS (
        DELETE FROM /*schema*/awa.deferred_jobs AS d
        WHERE d.job_id = ANY (ARRAY(
            SELECT g.job_id
            FROM (SELECT f.job_id, sum(f.length) OVER (ORDER BY f.run_at, f.job_id ROWS UNBOUNDED PRECEDING) - f.length AS before
                  FROM (SELECT s.job_id, s.run_at, octet_length(s.args::text)
                               + coalesce(octet_length(s.metadata::text), 0) + coalesce(octet_length(s.last_error), 0) AS length
                        -- As in claim_lane_0: rows that cannot be promoted by what is stored of them are not read.
                        FROM (SELECT n.job_id, n.run_at, n.args, n.metadata, n.last_error,
                                     sum(n.stored) OVER (ORDER BY n.run_at, n.job_id ROWS UNBOUNDED PRECEDING) - n.stored
                                         AS stored_before
                              FROM (SELECT h.job_id, h.run_at, h.args, h.metadata, h.last_error,
                                           pg_column_size(h.args) - 4 AS stored
                                    FROM /*schema*/awa.deferred_jobs AS h WHERE h.run_at <= v_now
                                    ORDER BY h.run_at, h.job_id LIMIT p_limit FOR UPDATE SKIP LOCKED) AS n) AS s
                        WHERE s.stored_before < 67108864) AS f) AS g
            WHERE g.before < 67108864))
        RETURNING d.job_id, d.run_at, d.kind, d.args, d.max_attempts, d.metadata, d.created_at, d.attempt, d.run_lease,
            d.last_error, d.queue, d.priority, d.shard)
    SELECT count(*)::integer AS jobs,
           sum(octet_length(d.args::text) + coalesce(octet_length(d.metadata::text), 0)
               + coalesce(octet_length(d.last_error), 0)) AS bytes, array_agg(d.job_id ORDER BY d.run_at, d.job_id) AS job_ids,
           array_agg(d.kind ORDER BY d.run_at, d.job_id) AS kinds, array_agg(d.args ORDER BY d.run_at, d.job_id) AS args,
           array_agg(d.max_attempts ORDER BY d.run_at, d.job_id) AS max_attempts,
           array_agg(d.metadata ORDER BY d.run_at, d.job_id) AS metadata,
           array_agg(d.created_at ORDER BY d.run_at, d.job_id) AS created_ats,
           array_agg(d.attempt ORDER BY d.run_at, d.job_id) AS attempts,
           array_agg(d.run_lease ORDER BY d.run_at, d.job_id) AS run_leases,
           array_agg(d.last_error ORDER BY d.run_at, d.job_id) AS errors,
           array_agg(d.queue ORDER BY d.run_at, d.job_id) AS queues,
           array_agg(d.priority ORDER BY d.run_at, d.job_id) AS priorities,
           array_agg(d.shard ORDER BY d.run_at, d.job_id) AS shards
    INTO v_due FROM due AS d;
    IF v_due.jobs > 0 THEN
        PERFORM /*schema*/awa.append_again(v_due.job_ids, v_due.queues, v_due.priorities, v_due.shards, v_due.kinds,
            v_due.args, v_due.max_attempts, v_due.metadata, v_due.created_ats, v_due.attempts, v_due.run_leases,
            v_due.errors, v_now);
    END IF;
    jobs := v_due.jobs;
    more := v_due.jobs >= p_limit OR coalesce(v_due.bytes >= 67108864, false);
END
$awa$;
