-- Purpose: takes the announcement of a bucket back.
-- Parameters: bucket.
-- Returns: whether it was announced.
-- Locks: releases the shared session lock.
-- Caller: wake-ups.
SELECT pg_catalog.pg_advisory_unlock_shared(/*schema*/awa.wake_key($1::integer))
