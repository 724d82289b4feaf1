-- Purpose: what rewrite_pre_ring did in this transaction.
-- Parameters: none.
-- Returns: numbers of claims, closures and claims that were open, parted by blanks; NULL when there was nothing to rewrite.
-- Locks: none.
-- Caller: prepare_schema.
SELECT nullif(current_setting('awa.pre_ring', true), '')
