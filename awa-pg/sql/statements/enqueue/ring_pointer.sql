-- Purpose: where the queue ring stands, for programs that write ready rows by themselves.
-- Parameters: none.
-- Returns: one row, the pointer.
-- Locks: none.
-- Caller: Producer::enqueue.
SELECT p.last_value FROM /*schema*/awa.queue_ring_pointer AS p
