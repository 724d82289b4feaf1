-- Purpose: records a migration as applied.
-- Parameters: version, title, hash.
-- Returns: nothing.
-- Locks: none that matter.
-- Caller: prepare_schema.
INSERT INTO /*schema*/awa.migrations (version, title, hash) VALUES ($1::integer, $2::text, $3::text)
