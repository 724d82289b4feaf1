-- Purpose: moves leases of an old slot of the lease ring into the open one, so that they do not keep it. Whoever is ending
--   one of them meanwhile is not disturbed, and who comes after finds it in its new place (see take_leases).
-- Parameters: the slot; at most so many.
-- Returns: how many were moved, and how many are left, those included that somebody is ending.
-- Locks: the rows, only tried; ROW EXCLUSIVE on the child of the open slot.
-- Caller: Maintainer::unpin.
CREATE OR REPLACE FUNCTION /*schema*/awa.forward_leases(
    p_slot smallint, p_limit bigint, OUT moved bigint, OUT remaining bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_open smallint := /*schema*/awa.enter_lease_slot();
BEGIN
    moved := 0;
    IF v_open <> p_slot THEN
        WITH held AS (
            SELECT l.receipt_id FROM /*schema*/awa.leases AS l WHERE l.lease_slot = p_slot
            ORDER BY l.receipt_id LIMIT p_limit FOR UPDATE SKIP LOCKED
        ), gone AS (
            DELETE FROM /*schema*/awa.leases AS l USING held AS h
            WHERE l.lease_slot = p_slot AND l.receipt_id = h.receipt_id
            RETURNING l.receipt_id, l.nonce, l.job_id, l.run_lease, l.lane_id, l.xid, l.instance_id, l.created_at,
                l.claimed_at, l.deadline_at, l.claim_slot, l.priority, l.shard, l.attempt, l.max_attempts, l.queue, l.kind,
                l.args, l.metadata, l.last_error, l.waiting_until
        )
        INSERT INTO /*schema*/awa.leases (
            receipt_id, nonce, job_id, run_lease, lane_id, xid, instance_id, created_at, claimed_at, deadline_at,
            claim_slot, lease_slot, priority, shard, attempt, max_attempts, queue, kind, args, metadata, last_error,
            waiting_until)
        SELECT g.receipt_id, g.nonce, g.job_id, g.run_lease, g.lane_id, g.xid, g.instance_id, g.created_at, g.claimed_at,
               g.deadline_at, g.claim_slot, v_open, g.priority, g.shard, g.attempt, g.max_attempts, g.queue, g.kind,
               g.args, g.metadata, g.last_error, g.waiting_until
        FROM gone AS g;
        GET DIAGNOSTICS moved = ROW_COUNT;
    END IF;
    SELECT count(*) INTO remaining FROM /*schema*/awa.leases AS l WHERE l.lease_slot = p_slot;
END
$awa$;
