-- Purpose: makes rotations of one ring take turns, without ever waiting.
-- Parameters: name of the ring.
-- Returns: whether it is this transaction's turn.
-- Locks: an advisory lock, kept to the end of the transaction.
-- Caller: rotate.
SELECT pg_catalog.pg_try_advisory_xact_lock(
    pg_catalog.hashtextextended('awa rotation of ' || '/*schema*/awa' || ' ' || $1::text, 0))
