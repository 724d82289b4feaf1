-- Purpose: tells sleeping dispatchers of a bucket that jobs are about to be committed. Called after the jobs were inserted. A
--   dispatcher about to sleep holds a shared session lock on the bucket; only when that is so is a notification sent, because
--   those that notify commit one at a time in the whole database, each with its flush. Of calls that are transactions of their
--   own one notifies for all that are open beside it: who is woken sees the others as running, and looks again.
-- Parameters: bucket; whether the call is a transaction of its own.
-- Returns: whether it has notified.
-- Locks: an advisory lock on the bucket, released before it returns; who is a transaction of its own and notifies keeps a
--   second one to its end.
-- Caller: wake, enqueue_at_once.
-- depends on: wake_key, wake_channel
CREATE OR REPLACE FUNCTION /*schema*/awa.wake_one(p_bucket integer, p_is_alone boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_key      bigint := /*schema*/awa.wake_key(p_bucket);
    -- Beside the lock of the bucket, 2^62 away: of who notifies for it.
    c_notifier CONSTANT bigint := 4611686018427387904;
BEGIN
    -- One expression: a cancelled statement must not leave the lock behind on a pooled connection.
    IF (CASE WHEN pg_try_advisory_lock(v_key) THEN pg_advisory_unlock(v_key) ELSE false END)
       OR p_is_alone AND NOT pg_try_advisory_xact_lock(v_key # c_notifier) THEN
        RETURN false;
    END IF;
    PERFORM pg_notify(/*schema*/awa.wake_channel(), p_bucket::text);
    RETURN true;
END
$awa$;
