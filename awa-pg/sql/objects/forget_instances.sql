-- Purpose: forgets instances that have been silent for a day and hold nothing. A function, because compiling the plan of what
--   is open costs seconds, during which it would hold every slot; and where nobody has been silent, it does not look.
-- Parameters: the present for tests.
-- Returns: how many.
-- Locks: the rows deleted; ACCESS SHARE on the claim ring and the leases where somebody has been silent.
-- Caller: Maintainer::tidy.
CREATE OR REPLACE FUNCTION /*schema*/awa.forget_instances(p_now timestamptz DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_silent    bigint[];
    v_forgotten bigint;
BEGIN
    SELECT array_agg(i.instance_id) INTO v_silent FROM /*schema*/awa.runtime_instances AS i
    WHERE i.last_beat < coalesce(p_now, clock_timestamp()) - interval '1 day';
    IF v_silent IS NULL THEN
        RETURN 0;
    END IF;
    DELETE FROM /*schema*/awa.runtime_instances AS i
    WHERE i.instance_id = ANY (v_silent)
      AND i.last_beat < coalesce(p_now, clock_timestamp()) - interval '1 day'
      AND NOT EXISTS (SELECT FROM /*schema*/awa.open_claims AS o
                      WHERE o.instance_id = i.instance_id AND NOT isempty(o.open))
      AND NOT EXISTS (SELECT FROM /*schema*/awa.leases AS l
                      WHERE l.instance_id = i.instance_id AND l.waiting_until IS NULL);
    GET DIAGNOSTICS v_forgotten = ROW_COUNT;
    RETURN v_forgotten;
END
$awa$;
