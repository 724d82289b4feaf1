-- Purpose: the next expired row-local claims of a slot after the deadline cursor.
-- Parameters: the slot of the claim ring; (deadline_at, job, lease) to start behind; last (deadline_at, job, lease) or NULLs;
--   limit; the present.
-- Returns: receipt, job, lease, nonce, deadline_at, whether it is closed.
-- Locks: ACCESS SHARE on the slot's children.
-- Caller: rescue.
CREATE OR REPLACE FUNCTION /*schema*/awa.deadline_rows(
    p_slot smallint, p_after_at timestamptz, p_after_job bigint, p_after_lease bigint, p_through_at timestamptz,
    p_through_job bigint, p_through_lease bigint, p_limit bigint, p_now timestamptz)
RETURNS TABLE (
    receipt_id bigint, job_id bigint, run_lease bigint, nonce bigint, deadline_at timestamptz, is_closed boolean)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $awa$
#variable_conflict use_column
BEGIN
    CASE p_slot
    -- each claim slot:
    WHEN 0/*slot*/ THEN
        RETURN QUERY
        SELECT l.receipt_id, l.job_id, l.run_lease, l.nonce, l.deadline_at,
               EXISTS (SELECT FROM /*schema*/awa.lease_claim_closures_0/*slot*/ AS c WHERE c.receipt_id = l.receipt_id)
        FROM /*schema*/awa.lease_claims_0/*slot*/ AS l
        WHERE l.deadline_at IS NOT NULL AND l.deadline_at <= p_now
          AND (l.deadline_at, l.job_id, l.run_lease)
              > (coalesce(p_after_at, '-infinity'), coalesce(p_after_job, 0), coalesce(p_after_lease, 0))
          AND (l.deadline_at, l.job_id, l.run_lease)
              <= (coalesce(p_through_at, 'infinity'), coalesce(p_through_job, 0), coalesce(p_through_lease, 0))
        ORDER BY l.deadline_at, l.job_id, l.run_lease LIMIT p_limit;
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', p_slot, true);
    END CASE;
END
$awa$;
