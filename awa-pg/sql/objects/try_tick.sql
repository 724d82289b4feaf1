-- Purpose: asks for the turn of a maintenance task: true for one caller in the fleet per interval.
-- Parameters: the task; the interval in microseconds; the present for tests.
-- Returns: whether the caller has the turn.
-- Locks: an advisory lock per task, only tried, kept to the end of the transaction.
-- Caller: Maintainer::try_tick.
CREATE OR REPLACE FUNCTION /*schema*/awa.try_tick(p_task text, p_every_us bigint, p_now timestamptz DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_now  bigint := (extract(epoch FROM coalesce(p_now, clock_timestamp())) * 1000000)::bigint;
    v_name text := format('%I.%I', '/*schema*/awa', 'tick_' || p_task);
    v_last bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('awa tick of ' || v_name, 0)) THEN
        RETURN false;
    END IF;
    CASE p_task
        WHEN 'promote' THEN SELECT last_value INTO v_last FROM /*schema*/awa.tick_promote;
        WHEN 'rescue' THEN SELECT last_value INTO v_last FROM /*schema*/awa.tick_rescue;
        WHEN 'rings' THEN SELECT last_value INTO v_last FROM /*schema*/awa.tick_rings;
        WHEN 'tidy' THEN SELECT last_value INTO v_last FROM /*schema*/awa.tick_tidy;
    END CASE;
    -- A clock that was set back must not stop the task until it has caught up.
    IF v_last + p_every_us > v_now AND v_last <= v_now THEN
        RETURN false;
    END IF;
    PERFORM setval(v_name::regclass, greatest(v_now, 0));
    RETURN true;
END
$awa$;
