-- Purpose: shows that a worker process is alive.
-- Parameters: instance; staleness in microseconds; the present for tests.
-- Returns: nothing. A gap of at least the staleness between two beats starts beating_since anew: an instance that was
--   silent so long cannot judge others yet.
-- Locks: the row of the instance.
-- Caller: Consumer::beat.
CREATE OR REPLACE FUNCTION /*schema*/awa.beat(p_instance bigint, p_staleness_us bigint, p_now timestamptz DEFAULT NULL)
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
BEGIN
    INSERT INTO /*schema*/awa.runtime_instances AS i (instance_id, started_at, beating_since, last_beat, staleness_us)
    VALUES (p_instance, v_now, v_now, v_now, p_staleness_us)
    ON CONFLICT (instance_id) DO UPDATE
    SET last_beat = greatest(i.last_beat, v_now), retired_at = NULL, staleness_us = p_staleness_us,
        beating_since = CASE WHEN v_now - i.last_beat < p_staleness_us * interval '1 microsecond'
                             THEN i.beating_since ELSE v_now END;
END
$awa$;
