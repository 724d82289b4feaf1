-- Purpose: stores jobs of which some are unique.
-- Parameters: as the function enqueue_unique_jobs.
-- Returns: the ids of the jobs that stand for them, and which of these are new, and what they replaced, each as one array
--   in input order.
-- Locks: as the function.
-- Caller: Producer::enqueue, enqueue in a driver's transaction.
SELECT e.jobs, e.are_new, e.replaced
FROM /*schema*/awa.enqueue_unique_jobs($1::text[], $2::smallint[], $3::smallint[], $4::smallint[], $5::text[], $6::json[],
    $7::smallint[], $8::json[], $9::timestamptz[], $10::bigint[], $11::bytea[], $12::bigint[], $13::smallint[],
    $14::boolean[], $15::boolean, $16::timestamptz, $17::integer[]) AS e
