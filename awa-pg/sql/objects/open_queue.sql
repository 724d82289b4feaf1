-- Purpose: makes sure that the four lanes of one shard of a queue exist, so that its first job is found at once.
-- Parameters: queue; shard.
-- Returns: nothing.
-- Locks: rows of queue_lanes, briefly; call it in a transaction of its own.
-- Caller: open_queue_lanes, fold_lane_hints.
CREATE OR REPLACE FUNCTION /*schema*/awa.open_queue(p_queue text, p_shard smallint DEFAULT 0) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_paused boolean;
BEGIN
    PERFORM FROM /*schema*/awa.queue_lanes AS l WHERE l.queue = p_queue AND l.shard = p_shard HAVING count(*) = 4;
    IF FOUND THEN
        RETURN;
    END IF;
    SELECT coalesce(bool_or(l.paused), false) INTO v_paused FROM /*schema*/awa.queue_lanes AS l WHERE l.queue = p_queue;
    INSERT INTO /*schema*/awa.queue_lanes (lane_id, priority, shard, paused, queue)
    SELECT /*schema*/awa.lane_id(p_queue, p::smallint, p_shard), p, p_shard, v_paused, p_queue
    FROM generate_series(1, 4) AS p
    -- Without a target: of two that open a queue at once, the later may meet the earlier in either unique index.
    ON CONFLICT DO NOTHING;
    PERFORM FROM /*schema*/awa.queue_lanes AS l WHERE l.queue = p_queue AND l.shard = p_shard HAVING count(*) = 4;
    IF NOT FOUND AND current_setting('transaction_isolation') = 'read committed' THEN
        RAISE EXCEPTION 'a lane of queue % has the number of a lane of another queue', p_queue USING ERRCODE = 'AW003', CONSTRAINT = 'AW003',
            HINT = 'give the queue another name';
    END IF;
END
$awa$;
