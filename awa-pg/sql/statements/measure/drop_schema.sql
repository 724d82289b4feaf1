-- Purpose: removes the schema with every job in it, for whoever made it only to measure.
-- Parameters: none.
-- Returns: nothing.
-- Locks: ACCESS EXCLUSIVE on everything in the schema.
-- Caller: drop_schema.
DROP SCHEMA IF EXISTS /*schema*/awa CASCADE
