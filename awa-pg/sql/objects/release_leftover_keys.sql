-- Purpose: deletes keys that their jobs gave back while somebody else had them locked.
-- Parameters: none.
-- Returns: how many entries were worked off, at most 1,000 a call.
-- Locks: the rows of unique_releases that nobody else has, and the keys deleted, only tried.
-- Caller: Maintainer::tidy.
CREATE OR REPLACE FUNCTION /*schema*/awa.release_leftover_keys() RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_left  record;
    v_total integer := 0;
BEGIN
    FOR v_left IN
        SELECT r.ctid AS at, r.job_id FROM /*schema*/awa.unique_releases AS r LIMIT 1000 FOR UPDATE SKIP LOCKED
    LOOP
        DELETE FROM /*schema*/awa.unique_claims AS c
        WHERE c.key = (SELECT f.key FROM /*schema*/awa.unique_claims AS f WHERE f.job_id = v_left.job_id
                       FOR UPDATE SKIP LOCKED);
        PERFORM FROM /*schema*/awa.unique_claims AS c WHERE c.job_id = v_left.job_id;
        CONTINUE WHEN FOUND;
        DELETE FROM /*schema*/awa.unique_releases AS r WHERE r.ctid = v_left.at;
        v_total := v_total + 1;
    END LOOP;
    RETURN v_total;
END
$awa$;
