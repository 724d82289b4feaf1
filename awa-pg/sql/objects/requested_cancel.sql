-- Purpose: whether somebody has asked to cancel a job that is about to live on.
-- Parameters: id.
-- Returns: the reason, or NULL.
-- Locks: none. cancel_requests is opened only while something was asked for.
-- Caller: place_ended.
CREATE OR REPLACE FUNCTION /*schema*/awa.requested_cancel(p_job bigint) RETURNS text
LANGUAGE plpgsql STABLE AS $awa$
BEGIN
    IF pg_relation_size('/*schema*/awa.cancel_requests') = 0 THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT r.reason FROM /*schema*/awa.cancel_requests AS r WHERE r.job_id = p_job
            ORDER BY r.requested_at LIMIT 1);
END
$awa$;
