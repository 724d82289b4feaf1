-- Purpose: removes the jobs of a queue that wait.
-- Parameters: queue, whether also those that wait for their time.
-- Returns: how many were removed; whether something was left because somebody else was changing it.
-- Locks: as the function purge_queue.
-- Caller: Operator::purge_queue.
SELECT p.jobs, p.contended FROM /*schema*/awa.purge_queue($1::text, $2::boolean) AS p
