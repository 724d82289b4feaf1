-- Purpose: the next claim batches of a slot after the stale cursor, in the order in which they were claimed.
-- Parameters: the slot of the claim ring; batch to start behind, last batch or NULL, limit.
-- Returns: batch, nonce, claimed_at, open receipts as text, last beat of its instance (NULL: nothing is known of it),
--   whether the instance has withdrawn since, and the staleness time that it asked for.
--   Batches that are too new are in the page as well: the sweep stops at them.
-- Locks: ACCESS SHARE on the slot's children.
-- Caller: rescue.
-- depends on: open_claims_0
CREATE OR REPLACE FUNCTION /*schema*/awa.stale_page(p_slot smallint, p_after bigint, p_through bigint, p_limit bigint)
RETURNS TABLE (batch_id bigint, nonce bigint, claimed_at timestamptz, open text, last_beat timestamptz, is_withdrawn boolean,
    staleness_us bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $awa$
BEGIN
    CASE p_slot
    -- each claim slot:
    WHEN 0/*slot*/ THEN
        RETURN QUERY
        SELECT b.batch_id, b.nonce, b.claimed_at, b.open::text,
               (SELECT i.last_beat FROM /*schema*/awa.runtime_instances AS i WHERE i.instance_id = b.instance_id),
               EXISTS (SELECT FROM /*schema*/awa.runtime_instances AS i
                       WHERE i.instance_id = b.instance_id AND i.retired_at >= b.claimed_at),
               (SELECT i.staleness_us FROM /*schema*/awa.runtime_instances AS i WHERE i.instance_id = b.instance_id)
        FROM /*schema*/awa.open_claims_0/*slot*/ AS b
        WHERE b.batch_id > p_after AND (p_through IS NULL OR b.batch_id <= p_through)
        ORDER BY b.batch_id LIMIT p_limit;
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', p_slot, true);
    END CASE;
END
$awa$;
