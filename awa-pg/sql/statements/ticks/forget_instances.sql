-- Purpose: forgets instances that have been silent for a day and hold nothing.
-- Parameters: present.
-- Returns: nothing.
-- Locks: the rows deleted.
-- Caller: Maintainer::tidy.
DELETE FROM /*schema*/awa.runtime_instances AS i
WHERE i.last_beat < coalesce($1::timestamptz, pg_catalog.clock_timestamp()) - interval '1 day'
  AND NOT EXISTS (SELECT FROM /*schema*/awa.open_claims AS o
                  WHERE o.instance_id = i.instance_id AND NOT pg_catalog.isempty(o.open))
  AND NOT EXISTS (SELECT FROM /*schema*/awa.leases AS l WHERE l.instance_id = i.instance_id AND l.waiting_until IS NULL)
