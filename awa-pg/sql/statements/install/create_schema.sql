-- Purpose: makes the schema.
-- Parameters: none.
-- Returns: nothing.
-- Locks: none that matter.
-- Caller: prepare_schema, when has_schema says that it is missing.
CREATE SCHEMA /*schema*/awa
