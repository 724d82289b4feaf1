-- Purpose: the isolation level of statements outside any transaction of their own, by the settings of the role and database.
-- Parameters: none.
-- Returns: its name.
-- Locks: none.
-- Caller: the first call of a store.
SELECT pg_catalog.current_setting('default_transaction_isolation')
