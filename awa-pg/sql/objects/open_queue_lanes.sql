-- Purpose: makes sure that the lanes of all shards of a queue exist that its new jobs go to.
-- Parameters: queue.
-- Returns: nothing.
-- Locks: as open_queue, for each shard.
-- Caller: workers at start, set_paused, configure_queue.
-- depends on: open_queue
CREATE OR REPLACE FUNCTION /*schema*/awa.open_queue_lanes(p_queue text) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_shards smallint := 1;
BEGIN
    IF pg_relation_size('/*schema*/awa.queue_settings') > 0 THEN
        v_shards := coalesce((SELECT s.enqueue_shards FROM /*schema*/awa.queue_settings AS s WHERE s.queue = p_queue), 1);
    END IF;
    FOR v_shard IN 0..v_shards - 1 LOOP
        PERFORM /*schema*/awa.open_queue(p_queue, v_shard::smallint);
    END LOOP;
END
$awa$;
