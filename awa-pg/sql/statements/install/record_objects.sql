-- Purpose: records functions and views as installed.
-- Parameters: parallel arrays: names, hashes.
-- Returns: nothing.
-- Locks: none that matter.
-- Caller: prepare_schema.
INSERT INTO /*schema*/awa.objects (name, hash) SELECT n.name, n.hash FROM unnest($1::text[], $2::text[]) AS n (name, hash)
ON CONFLICT (name) DO UPDATE SET hash = excluded.hash
