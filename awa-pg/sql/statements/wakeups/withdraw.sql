-- Purpose: takes the announcements of buckets back.
-- Parameters: buckets that this session holds.
-- Returns: for each whether it was announced.
-- Locks: releases the shared session locks.
-- Caller: wake-ups.
SELECT pg_catalog.pg_advisory_unlock_shared(/*schema*/awa.wake_key(b)) FROM pg_catalog.unnest($1::integer[]) AS b
