-- Purpose: moves the place from which claims look for what was carried over.
-- Parameters: none.
-- Returns: whether it moved.
-- Locks: as raise_carried_floor.
-- Caller: Maintainer::drain.
SELECT /*schema*/awa.raise_carried_floor()
