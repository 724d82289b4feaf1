-- Purpose: which of many queues have something to claim.
-- Parameters: queues.
-- Returns: as the function peek_queues.
-- Locks: as the function.
-- Caller: Consumer::peek.
SELECT p.waiting, p.horizon FROM /*schema*/awa.peek_queues($1::text[]) AS p
