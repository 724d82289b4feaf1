-- additive
--
-- Purpose: claims leave out the sealed slots that hold nothing for them. A long backlog fills slot after slot, and each claim of
--   every queue looked into all of them.

-- Of a sealed slot, when they are few: the lanes that have rows in it. NULL: not known, anything may be in it.
ALTER TABLE /*schema*/awa.queue_ring_slots ADD COLUMN lanes bigint[];
