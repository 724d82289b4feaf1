-- Purpose: sums up the permanent counters, once there are many rows of them.
-- Parameters: none.
-- Returns: nothing.
-- Locks: the rows deleted, only tried.
-- Caller: Maintainer::tidy.
CREATE OR REPLACE FUNCTION /*schema*/awa.compact_counters() RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    PERFORM FROM /*schema*/awa.queue_counters OFFSET 15 LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    WITH rows AS (
        DELETE FROM /*schema*/awa.queue_counters AS c
        WHERE c.ctid = ANY (ARRAY(SELECT f.ctid FROM /*schema*/awa.queue_counters AS f FOR UPDATE SKIP LOCKED))
        RETURNING c.jobs, c.state, c.queue)
    INSERT INTO /*schema*/awa.queue_counters (jobs, state, queue)
    SELECT sum(r.jobs), r.state, r.queue FROM rows AS r GROUP BY r.state, r.queue;
END
$awa$;
