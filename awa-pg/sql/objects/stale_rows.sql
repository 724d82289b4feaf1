-- Purpose: the next row-local claims of a slot after the stale cursor, in the order in which they were claimed.
-- Parameters: the slot of the claim ring; (claimed_at, job, lease) to start behind; last (claimed_at, job, lease) or NULLs;
--   limit.
-- Returns: receipt, job, lease, nonce, claimed_at, whether it is closed, last beat of its instance (NULL: nothing is known of
--   it), whether the instance has withdrawn since, and the staleness time that it asked for. Claims that are too new are in the page as well: the sweep stops at
--   them.
-- Locks: ACCESS SHARE on the slot's children.
-- Caller: rescue.
CREATE OR REPLACE FUNCTION /*schema*/awa.stale_rows(
    p_slot smallint, p_after_at timestamptz, p_after_job bigint, p_after_lease bigint, p_through_at timestamptz,
    p_through_job bigint, p_through_lease bigint, p_limit bigint)
RETURNS TABLE (
    receipt_id bigint, job_id bigint, run_lease bigint, nonce bigint, claimed_at timestamptz, is_closed boolean,
    last_beat timestamptz, is_withdrawn boolean, staleness_us bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $awa$
#variable_conflict use_column
BEGIN
    CASE p_slot
    -- each claim slot:
    WHEN 0/*slot*/ THEN
        RETURN QUERY
        SELECT l.receipt_id, l.job_id, l.run_lease, l.nonce, l.claimed_at,
               EXISTS (SELECT FROM /*schema*/awa.lease_claim_closures_0/*slot*/ AS c WHERE c.receipt_id = l.receipt_id),
               (SELECT i.last_beat FROM /*schema*/awa.runtime_instances AS i WHERE i.instance_id = l.instance_id),
               EXISTS (SELECT FROM /*schema*/awa.runtime_instances AS i
                       WHERE i.instance_id = l.instance_id AND i.retired_at >= l.claimed_at),
               (SELECT i.staleness_us FROM /*schema*/awa.runtime_instances AS i WHERE i.instance_id = l.instance_id)
        FROM /*schema*/awa.lease_claims_0/*slot*/ AS l
        WHERE (l.claimed_at, l.job_id, l.run_lease)
              > (coalesce(p_after_at, '-infinity'), coalesce(p_after_job, 0), coalesce(p_after_lease, 0))
          AND (l.claimed_at, l.job_id, l.run_lease)
              <= (coalesce(p_through_at, 'infinity'), coalesce(p_through_job, 0), coalesce(p_through_lease, 0))
        ORDER BY l.claimed_at, l.job_id, l.run_lease LIMIT p_limit;
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', p_slot, true);
    END CASE;
END
$awa$;
