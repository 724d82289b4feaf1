-- Purpose: tells sleeping dispatchers that jobs of some queues are about to be committed. Called after the jobs were
--   inserted; holds nothing afterwards. A dispatcher about to sleep holds a shared session lock on the bucket of its
--   queue; only when that is so is a notification sent, because a commit that notifies takes a lock of the whole
--   database.
-- Parameters: queues, with or without repetitions.
-- Returns: nothing.
-- Locks: an advisory lock per bucket, released before it returns.
-- Caller: enqueue_jobs, promote_due, retry_jobs, set_paused.
-- depends on: wake_bucket, wake_key, wake_channel
CREATE OR REPLACE FUNCTION /*schema*/awa.wake(p_queues text[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_bucket integer;
    v_key    bigint;
BEGIN
    FOR v_bucket IN SELECT DISTINCT /*schema*/awa.wake_bucket(q) FROM unnest(p_queues) AS q LOOP
        v_key := /*schema*/awa.wake_key(v_bucket);
        -- One expression: a cancelled statement must not leave the lock behind on a pooled connection.
        IF NOT (CASE WHEN pg_try_advisory_lock(v_key) THEN pg_advisory_unlock(v_key) ELSE false END) THEN
            PERFORM pg_notify(/*schema*/awa.wake_channel(), v_bucket::text);
        END IF;
    END LOOP;
END
$awa$;
