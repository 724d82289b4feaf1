-- Purpose: stores jobs that are alike and are to run at once.
-- Parameters: as the function enqueue_at_once.
-- Returns: the ids in input order, as one array.
-- Locks: as the function.
-- Caller: Producer::enqueue, enqueue in a driver's transaction.
SELECT /*schema*/awa.enqueue_at_once($1::text, $2::smallint, $3::text, $4::json[], $5::smallint, $6::json[], $7::boolean,
    $8::timestamptz)
