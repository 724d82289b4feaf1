-- Purpose: the next expired claim batches of a slot after the batch deadline cursor.
-- Parameters: the slot of the claim ring; (deadline_at, batch) to start behind, last (deadline_at, batch) or NULLs, limit;
--   the present.
-- Returns: batch, nonce, deadline_at, open receipts as text.
-- Locks: ACCESS SHARE on the slot's children.
-- Caller: rescue.
-- depends on: open_claims_0
CREATE OR REPLACE FUNCTION /*schema*/awa.deadline_page(
    p_slot smallint, p_after_at timestamptz, p_after bigint, p_through_at timestamptz, p_through bigint, p_limit bigint,
    p_now timestamptz)
RETURNS TABLE (batch_id bigint, nonce bigint, deadline_at timestamptz, open text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $awa$
BEGIN
    CASE p_slot
    -- each claim slot:
    WHEN 0/*slot*/ THEN
        RETURN QUERY
        SELECT b.batch_id, b.nonce, b.deadline_at, b.open::text
        FROM /*schema*/awa.open_claims_0/*slot*/ AS b
        WHERE b.deadline_at IS NOT NULL AND b.deadline_at <= p_now
          AND (b.deadline_at, b.batch_id) > (coalesce(p_after_at, '-infinity'), coalesce(p_after, 0))
          AND (b.deadline_at, b.batch_id) <= (coalesce(p_through_at, 'infinity'), coalesce(p_through, 0))
        ORDER BY b.deadline_at, b.batch_id LIMIT p_limit;
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', p_slot, true);
    END CASE;
END
$awa$;
