-- Purpose: the state of one job, looked at without keeping a lock: the tables of all slots are read, and an application's
--   transaction that held them to its end would keep every slot from being reclaimed. What a subtransaction has locked is let go
--   when it is rolled back.
-- Parameters: id.
-- Returns: the state, or NULL when there is no such job.
-- Locks: none when it returns.
-- Caller: request_cancel.
CREATE OR REPLACE FUNCTION /*schema*/awa.glimpse_state(p_job bigint) RETURNS text
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_state text;
BEGIN
    BEGIN
        SELECT j.state INTO v_state FROM /*schema*/awa.find_job(p_job) AS j;
        RAISE EXCEPTION 'looked' USING ERRCODE = 'AW000', CONSTRAINT = 'AW000';
    EXCEPTION WHEN SQLSTATE 'AW000' THEN
        RETURN v_state;
    END;
END
$awa$;
