-- additive
--
-- Purpose: how many jobs have ended, for good: what is counted when the history that shows them is reclaimed; and an end to
--   the time for which dead jobs are held.

-- A row per reclaimed slot, queue and state, appended in the transaction that truncates the slot, so that nothing is
-- counted twice or not at all and no row is waited for. A tick sums the rows up.
CREATE TABLE /*schema*/awa.queue_counters (
    jobs  bigint NOT NULL,
    state text   NOT NULL CHECK (state IN ('completed', 'failed', 'cancelled')),
    queue text   NOT NULL
);

-- For the cleanup of jobs that died long ago.
CREATE INDEX dlq_entries_failed ON /*schema*/awa.dlq_entries (failed_at, job_id);
