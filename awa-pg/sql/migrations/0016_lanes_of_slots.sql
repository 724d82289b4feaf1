-- additive
--
-- Purpose: claims leave out the sealed slots that hold nothing for them. A long backlog fills slot after slot, and each claim of
--   every queue looked into all of them.

-- Of a sealed slot: whether its lanes have been noted, and the lanes that have rows in it, when they are few. NULL: anything may be
-- in it.
ALTER TABLE /*schema*/awa.queue_ring_slots
    ADD COLUMN has_noted_lanes boolean NOT NULL DEFAULT false,
    ADD COLUMN lanes bigint[];
