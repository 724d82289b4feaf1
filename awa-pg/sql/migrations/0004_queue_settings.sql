-- additive
--
-- Purpose: what is set per queue, and what lets a failed job outside the dead-letter queue be tried again.

-- A queue without a row has the defaults. Empty in the common case: readers look at its size first.
CREATE TABLE /*schema*/awa.queue_settings (
    enqueue_shards smallint NOT NULL DEFAULT 1 CHECK (enqueue_shards BETWEEN 1 AND 64),
    dead_letter    boolean  NOT NULL DEFAULT true,
    queue          text     NOT NULL PRIMARY KEY CHECK (octet_length(queue) BETWEEN 1 AND 200)
);

-- The key that a failed job has given back, and takes again when an operator retries it; as in dlq_entries.
ALTER TABLE /*schema*/awa.done_entries ADD COLUMN unique_key bytea, ADD COLUMN unique_states smallint;

-- They now take the numbers of ordering keys; a second function of the name would make every call of it ambiguous.
DROP FUNCTION IF EXISTS /*schema*/awa.enqueue_jobs(
    text[], smallint[], smallint[], smallint[], text[], json[], smallint[], json[], timestamptz[], bigint[], boolean,
    timestamptz, bigint[]);
DROP FUNCTION IF EXISTS /*schema*/awa.enqueue_unique_jobs(
    text[], smallint[], smallint[], smallint[], text[], json[], smallint[], json[], timestamptz[], bigint[], bytea[],
    bigint[], smallint[], boolean[], boolean, timestamptz);
