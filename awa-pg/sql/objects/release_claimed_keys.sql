-- Purpose: gives back the keys that claimed jobs hold only while they wait.
-- Parameters: jobs.
-- Returns: nothing.
-- Locks: the rows deleted, only tried: what somebody else has locked is left to a tick. Never waits.
-- Caller: claim_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.release_claimed_keys(p_jobs bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $awa$
BEGIN
    -- The condition on the states is that of the partial index, which has no other keys in it.
    PERFORM FROM /*schema*/awa.unique_claims AS c
    WHERE c.states & 2 = 0
      AND c.job_id BETWEEN (SELECT min(j) FROM unnest(p_jobs) AS j) AND (SELECT max(j) FROM unnest(p_jobs) AS j)
    LIMIT 1;
    IF FOUND THEN
        PERFORM /*schema*/awa.release_unique_keys(p_jobs, 2::smallint);
    END IF;
END
$awa$;
