-- additive
--
-- Purpose: finding one job by its id without reading whole slots. A range of a BRIN index costs nothing until it is
--   summarised, and maintenance summarises only ranges that are full. Small ranges, since one of them is read per look-up.

-- each queue slot:
DROP INDEX /*schema*/awa.ready_entries_first_0/*slot*/;
CREATE INDEX ready_entries_first_0/*slot*/ ON /*schema*/awa.ready_entries_0/*slot*/ USING brin (job_id)
    WITH (pages_per_range = 32) WHERE run_lease IS NULL;
SELECT brin_desummarize_range('/*schema*/awa.ready_entries_first_0/*slot*/', 0);
-- Several intervals per range, because the sequences of different lanes stand side by side.
CREATE INDEX receipt_completion_batches_attempt_0/*slot*/ ON /*schema*/awa.receipt_completion_batches_0/*slot*/
    USING brin (attempt_seq int8_minmax_multi_ops) WITH (pages_per_range = 16);
SELECT brin_desummarize_range('/*schema*/awa.receipt_completion_batches_attempt_0/*slot*/', 0);
-- end each
