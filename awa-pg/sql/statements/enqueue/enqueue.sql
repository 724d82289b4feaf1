-- Purpose: stores jobs.
-- Parameters: as the function enqueue_jobs.
-- Returns: the ids in input order, as one array.
-- Locks: as the function.
-- Caller: Producer::enqueue, enqueue in a driver's transaction.
SELECT /*schema*/awa.enqueue_jobs($1::text[], $2::smallint[], $3::smallint[], $4::smallint[], $5::text[], $6::json[],
    $7::smallint[], $8::json[], $9::timestamptz[], $10::bigint[], $11::boolean, $12::timestamptz, NULL, $13::integer[])
