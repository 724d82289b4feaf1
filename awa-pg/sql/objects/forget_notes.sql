-- Purpose: forgets what was noted for jobs that are completed, cancelled or failed. Called for every job that ends, so it
--   costs nothing where no job has noted anything.
-- Parameters: jobs.
-- Returns: nothing.
-- Locks: the rows deleted, which nobody else holds: they are written under the lease of a running attempt.
-- Caller: place_ended, record_completions_in_0, cancel_deferred, cancel_carried, cancel_in_ring, delete_jobs,
--   forget_removed.
CREATE OR REPLACE FUNCTION /*schema*/awa.forget_notes(p_jobs bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    IF pg_relation_size('/*schema*/awa.attempt_state') > 0 THEN
        DELETE FROM /*schema*/awa.attempt_state AS s WHERE s.job_id = ANY (p_jobs);
    END IF;
END
$awa$;
