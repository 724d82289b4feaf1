-- Purpose: hands out transaction numbers to nobody.
-- Parameters: how many.
-- Returns: nothing.
-- Locks: none.
-- Caller: repair, outside a transaction.
CALL /*schema*/awa.use_up_transactions($1::bigint)
