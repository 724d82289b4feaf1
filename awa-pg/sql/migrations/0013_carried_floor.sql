-- additive
--
-- Purpose: claims of what was carried over begin behind the rows that are gone for good. While somebody holds a snapshot,
--   deleted rows keep their index entries, and every claim of the lane would walk over all of them.

-- When a row came: the transaction that inserted it. The row is still taken in the order of its place, among the first
-- that are left.
ALTER TABLE /*schema*/awa.carried_entries ADD COLUMN moved_xid xid8 NOT NULL DEFAULT '0';
ALTER TABLE /*schema*/awa.carried_entries ALTER COLUMN moved_xid SET DEFAULT pg_current_xact_id();
ALTER TABLE /*schema*/awa.carried_entries DROP CONSTRAINT carried_entries_pkey,
    ADD PRIMARY KEY (lane_id, moved_xid, xid, job_id);

-- No row that is there, or that an open transaction may yet insert, came before this. Sequences, because they are
-- overwritten in place: no dead row per step while a snapshot is held. A dump reads them later than the rows, so the
-- number only counts for the file of carried_entries for which it was found out.
CREATE SEQUENCE /*schema*/awa.carried_floor_xid AS bigint;
CREATE SEQUENCE /*schema*/awa.carried_floor_file AS bigint;
