-- Purpose: keeps the indexes that look-ups by id use up to date.
-- Parameters: none.
-- Returns: how many ranges were summarised.
-- Locks: as the function.
-- Caller: Maintainer::drain.
SELECT /*schema*/awa.summarise_slots()
