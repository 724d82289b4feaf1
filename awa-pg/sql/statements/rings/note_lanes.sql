-- Purpose: notes which lanes have rows in a sealed slot.
-- Parameters: slot, generation.
-- Returns: whether something was noted.
-- Locks: as the function.
-- Caller: drain.
SELECT /*schema*/awa.note_lanes($1::smallint, $2::bigint)
