-- Purpose: how far the sequences of the schema have come.
-- Parameters: none.
-- Returns: sequence, last value (0: never used), largest value.
-- Locks: none.
-- Caller: doctor.
SELECT s.sequencename::text, coalesce(s.last_value, 0), s.max_value
FROM pg_catalog.pg_sequences AS s WHERE s.schemaname = '/*schema*/awa' ORDER BY s.sequencename
