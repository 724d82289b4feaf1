-- additive
--
-- Purpose: what tells a ready row whose job was moved to another lane from one whose job was cancelled.

ALTER TABLE /*schema*/awa.ready_tombstones
    ADD COLUMN moved_at timestamptz;      -- NULL: the job was cancelled; else it has a newer row, with a larger lease
