-- Purpose: sends a wake-up the way a producer does.
-- Parameters: queue.
-- Returns: nothing.
-- Locks: as the function.
-- Caller: doctor, after it announced itself.
SELECT /*schema*/awa.wake(ARRAY[$1::text])
