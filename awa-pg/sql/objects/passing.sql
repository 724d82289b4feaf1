-- Purpose: which attempt batch passed a ready row of a slot; see passing_0.
-- Parameters: the slot; the rest as passing_0.
-- Returns: as passing_0.
-- Locks: as passing_0.
-- Caller: look_for_job, cancel_in_ring, move_in_ring, settle_buried.
CREATE OR REPLACE FUNCTION /*schema*/awa.passing(
    p_ready_slot smallint, p_lane bigint, p_xid xid8, p_job bigint, OUT seq bigint, OUT batch_id bigint, OUT member integer)
LANGUAGE plpgsql STABLE AS $awa$
BEGIN
    CASE p_ready_slot
    -- each queue slot:
    WHEN 0/*slot*/ THEN
        SELECT p.seq, p.batch_id, p.member INTO seq, batch_id, member
        FROM /*schema*/awa.passing_0/*slot*/(p_lane, p_xid, p_job) AS p;
    -- end each
    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', p_ready_slot, true);
    END CASE;
END
$awa$;
