-- Purpose: how many lanes of a slot have a row that no cursor has passed.
-- Parameters: slot.
-- Returns: the number of lanes.
-- Locks: as the function.
-- Caller: drain, prune.
SELECT /*schema*/awa.unpassed_lanes($1::smallint)
