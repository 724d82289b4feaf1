-- Purpose: the functions and views as installed.
-- Parameters: none.
-- Returns: name, hash.
-- Locks: none that matter.
-- Caller: prepare_schema.
SELECT o.name, o.hash FROM /*schema*/awa.objects AS o
