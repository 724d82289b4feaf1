-- Purpose: the worker processes that were seen.
-- Parameters: present, limit.
-- Returns: microseconds since the last beat, whether it said goodbye; the last one heard of first.
-- Locks: none.
-- Caller: doctor.
SELECT (extract(epoch FROM coalesce($1::timestamptz, clock_timestamp()) - i.last_beat) * 1000000)::bigint,
       i.retired_at IS NOT NULL
FROM /*schema*/awa.runtime_instances AS i ORDER BY i.last_beat DESC, i.instance_id LIMIT $2::bigint
