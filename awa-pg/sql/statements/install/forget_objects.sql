-- Purpose: strikes functions and views off the books that were dropped.
-- Parameters: names.
-- Returns: nothing.
-- Locks: none that matter.
-- Caller: prepare_schema, grow_ring.
DELETE FROM /*schema*/awa.objects WHERE name = ANY ($1::text[])
