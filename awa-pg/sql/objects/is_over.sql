-- Purpose: whether the snapshot of this transaction proves that an attempt is over which it finds nowhere, although it may
--   not see everything: under REPEATABLE READ "not found" may also mean that the claim was committed, moved or truncated
--   after the snapshot.
-- Parameters: claim slot, nonce and receipt as presented.
-- Returns: true when the attempt had ended before the snapshot, or never existed; false when that cannot be known.
-- Locks: ACCESS SHARE on the claim ring.
-- Caller: end_leases.
CREATE OR REPLACE FUNCTION /*schema*/awa.is_over(p_claim_slot smallint, p_nonce bigint, p_receipt bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $awa$
DECLARE
    v_nonce   bigint;
    v_is_open boolean;
BEGIN
    SELECT o.nonce, o.open @> p_receipt INTO v_nonce, v_is_open FROM /*schema*/awa.open_compact_claims AS o
    WHERE o.claim_slot = p_claim_slot AND o.batch_id = p_receipt >> 10;
    IF NOT FOUND THEN
        SELECT l.nonce, NOT EXISTS (SELECT FROM /*schema*/awa.lease_claim_closures AS c
                                    WHERE c.claim_slot = l.claim_slot AND c.receipt_id = l.receipt_id)
        INTO v_nonce, v_is_open FROM /*schema*/awa.lease_claims AS l
        WHERE l.claim_slot = p_claim_slot AND l.receipt_id = p_receipt;
    END IF;
    IF FOUND THEN
        IF v_is_open AND v_nonce = p_nonce THEN
            RETURN false;
        END IF;
    ELSIF p_receipt >> 10 > coalesce((
        -- The claims of a slot are above after_batch of its generation. One that is not was truncated before the snapshot;
        -- so was one of a free slot that is not above the open generation, since the slot can only be opened after that.
        -- A claim that began as a lease is in no slot: of the generations before the oldest that is left, all are over.
        SELECT CASE WHEN bool_or(s.slot = p_claim_slot AND s.state <> 'free')
                    THEN max(s.after_batch) FILTER (WHERE s.slot = p_claim_slot)
                    WHEN bool_or(s.slot = p_claim_slot) THEN max(s.after_batch) FILTER (WHERE s.state = 'open')
                    ELSE min(s.after_batch) FILTER (WHERE s.state <> 'free') END
        FROM /*schema*/awa.claim_ring_slots AS s), 0) THEN
        RETURN false;
    END IF;
    -- A lease that this snapshot should see may have been moved out of a child that was truncated since. The catalog as of
    -- the snapshot then names another file than the present one.
    RETURN NOT EXISTS (
        SELECT FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = '/*schema*/awa.leases'::regclass AND c.relfilenode <> pg_relation_filenode(c.oid));
END
$awa$;
