-- Purpose: gives the jobs outside the rings transaction numbers that are past for everybody, below those that the waiting
--   rows of the ring get next, so that the order in each lane stays.
-- Parameters: none.
-- Returns: how many jobs, and nothing to look at.
-- Locks: the rows of carried_entries and leases.
-- Caller: repair.
WITH places AS MATERIALIZED (
    SELECT k.is_lease, k.job_id,
           (pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::text::bigint - 1
            - (SELECT coalesce(pg_catalog.max(w.run) + 1, 0) FROM /*schema*/awa.waiting_rows AS w)
            + k.run - pg_catalog.max(k.run) OVER ())::text::xid8 AS xid
    FROM /*schema*/awa.carried_runs AS k
), carried AS (
    UPDATE /*schema*/awa.carried_entries AS c SET xid = p.xid, moved_xid = '0' FROM places AS p
    WHERE NOT p.is_lease AND p.job_id = c.job_id RETURNING c.job_id
), leased AS (
    UPDATE /*schema*/awa.leases AS l SET xid = p.xid FROM places AS p
    WHERE p.is_lease AND p.job_id = l.job_id RETURNING l.job_id
)
SELECT (SELECT pg_catalog.count(*) FROM carried) + (SELECT pg_catalog.count(*) FROM leased),
       -- Where claims begin to look for them was said in other numbers.
       pg_catalog.setval('/*schema*/awa.carried_floor_file', 1)
