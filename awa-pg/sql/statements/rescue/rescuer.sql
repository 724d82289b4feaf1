-- Purpose: the beats of an instance.
-- Parameters: instance, present.
-- Returns: since when its beats have been unbroken, its last beat, the present; no row when it never beat.
-- Locks: none.
-- Caller: rescue.
SELECT i.beating_since, i.last_beat, coalesce($2::timestamptz, clock_timestamp())
FROM /*schema*/awa.runtime_instances AS i WHERE i.instance_id = $1::bigint
