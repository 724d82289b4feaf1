-- Purpose: the wake-up buckets of queues, and the channel to listen on.
-- Parameters: queues.
-- Returns: buckets 0 to 63, in input order; the channel.
-- Locks: none.
-- Caller: wake-ups.
SELECT pg_catalog.array_agg(/*schema*/awa.wake_bucket(q.queue) ORDER BY q.o), /*schema*/awa.wake_channel()
FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY AS q (queue, o)
