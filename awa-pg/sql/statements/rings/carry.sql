-- Purpose: moves all waiting rows of a slot into the carry-over.
-- Parameters: slot, at most so many rows.
-- Returns: how many; -1 when that was not possible.
-- Locks: as the function carry_slot.
-- Caller: Maintainer::unpin.
SELECT /*schema*/awa.carry_slot($1::smallint, $2::bigint)
