-- Purpose: where a job of a queue goes that has failed for good: the one spelling of it.
-- Parameters: queue.
-- Returns: 'dead', or 'failed' where the queue has no dead-letter queue.
-- Locks: none. queue_settings is opened only while something is set.
-- Caller: place_ended.
CREATE OR REPLACE FUNCTION /*schema*/awa.failed_route(p_queue text) RETURNS text
LANGUAGE plpgsql STABLE AS $awa$
BEGIN
    IF pg_relation_size('/*schema*/awa.queue_settings') > 0 THEN
        PERFORM FROM /*schema*/awa.queue_settings AS s WHERE s.queue = p_queue AND NOT s.dead_letter;
        IF FOUND THEN
            RETURN 'failed';
        END IF;
    END IF;
    RETURN 'dead';
END
$awa$;
