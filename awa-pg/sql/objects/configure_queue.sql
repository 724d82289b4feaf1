-- Purpose: sets what holds for a queue from now on, and makes the lanes that its new jobs will go to.
-- Parameters: queue; over how many shards its new jobs are spread; whether jobs that fail for good are held in the dead-letter
--   queue.
-- Returns: nothing.
-- Locks: the row of queue_settings; as open_queue_lanes. Call it in a transaction of its own.
-- Caller: Operator::configure_queue.
-- depends on: open_queue_lanes
CREATE OR REPLACE FUNCTION /*schema*/awa.configure_queue(p_queue text, p_enqueue_shards smallint, p_dead_letter boolean)
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
BEGIN
    INSERT INTO /*schema*/awa.queue_settings (queue, enqueue_shards, dead_letter)
    VALUES (p_queue, p_enqueue_shards, p_dead_letter)
    ON CONFLICT (queue) DO UPDATE SET enqueue_shards = excluded.enqueue_shards, dead_letter = excluded.dead_letter;
    PERFORM /*schema*/awa.open_queue_lanes(p_queue);
END
$awa$;
