-- additive
--
-- Purpose: the keys of unique jobs. A job has its key here and nowhere else, found by the job's id: the rows of the hot
--   path stay as narrow as they are, and moving a job cannot change its key.

-- Who holds which key. The primary key is the last word: whoever asks for a key that an open transaction has inserted
-- waits for its end.
CREATE TABLE /*schema*/awa.unique_claims (
    key    bytea    NOT NULL PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 64),
    job_id bigint   NOT NULL,
    states smallint NOT NULL                -- in which the key is held: the sum of 1 ready, 2 running, 4 deferred,
                                            -- 8 waiting, 128 dead
);
CREATE INDEX unique_claims_job ON /*schema*/awa.unique_claims (job_id);
CREATE INDEX unique_claims_until_claimed ON /*schema*/awa.unique_claims (job_id) WHERE states & 2 = 0;

-- Jobs that have given their keys back while somebody else had the row of unique_claims locked; a tick deletes it.
CREATE TABLE /*schema*/awa.unique_releases (
    job_id bigint NOT NULL
);

-- The key that a dead job has given back, and takes again when an operator retries it.
ALTER TABLE /*schema*/awa.dlq_entries ADD COLUMN unique_key bytea, ADD COLUMN unique_states smallint;

-- It now takes ids that were drawn before; a second function of this name would make every call of it ambiguous.
DROP FUNCTION IF EXISTS /*schema*/awa.enqueue_jobs(
    text[], smallint[], smallint[], smallint[], text[], json[], smallint[], json[], timestamptz[], bigint[], boolean,
    timestamptz);
