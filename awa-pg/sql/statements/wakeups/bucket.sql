-- Purpose: the wake-up bucket of a queue, and the channel to listen on.
-- Parameters: queue.
-- Returns: bucket 0 to 63, channel.
-- Locks: none.
-- Caller: wake-ups.
SELECT /*schema*/awa.wake_bucket($1::text), /*schema*/awa.wake_channel()
