-- Purpose: what jobs leave behind that an operator removed while they waited: their unique keys are free, their notes are gone.
--   Costs nothing where no job has either.
-- Parameters: jobs.
-- Returns: nothing.
-- Locks: as release_unique_keys and forget_notes.
-- Caller: purge_queue, purge_lane_0.
CREATE OR REPLACE FUNCTION /*schema*/awa.forget_removed(p_jobs bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    PERFORM /*schema*/awa.release_unique_keys(p_jobs, 0::smallint);
    PERFORM /*schema*/awa.forget_notes(p_jobs);
END
$awa$;
