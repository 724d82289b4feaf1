-- Purpose: the migrations that were applied.
-- Parameters: none.
-- Returns: version, hash; ascending.
-- Locks: none that matter.
-- Caller: prepare_schema.
SELECT m.version, m.hash FROM /*schema*/awa.migrations AS m ORDER BY m.version
