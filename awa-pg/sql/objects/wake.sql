-- Purpose: tells sleeping dispatchers that jobs of some queues are about to be committed. Called after the jobs were
--   inserted.
-- Parameters: queues, with or without repetitions; whether the call is a transaction of its own.
-- Returns: nothing.
-- Locks: as wake_one, for each bucket.
-- Caller: enqueue_jobs, promote_due, retry_jobs, set_paused.
-- depends on: wake_bucket, wake_one
CREATE OR REPLACE FUNCTION /*schema*/awa.wake(p_queues text[], p_is_alone boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    PERFORM /*schema*/awa.wake_one(b.bucket, p_is_alone)
    FROM (SELECT DISTINCT /*schema*/awa.wake_bucket(q) AS bucket FROM unnest(p_queues) AS q) AS b;
END
$awa$;
