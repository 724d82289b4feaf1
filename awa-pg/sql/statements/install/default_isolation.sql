-- Purpose: the isolation level of statements outside any transaction of their own, by the settings of the role and database.
-- Parameters: none.
-- Returns: its name.
-- Locks: none.
-- Caller: every call of a store, once.
SELECT pg_catalog.current_setting('default_transaction_isolation')
