-- Purpose: cancels one job whose newest ready row is still stored: by a tombstone when it waits to be claimed, by closing
--   its attempt when it runs.
-- Parameters: id; reason; the present.
-- Returns: 'ready' or 'running' when it was cancelled from there, 'contended' when somebody is claiming or ending it,
--   NULL when it is neither.
-- Locks: the advisory lock of its lane, only tried, kept to the end of the transaction; ROW EXCLUSIVE on the tables
--   written.
-- Caller: cancel_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.cancel_in_ring(p_job bigint, p_reason text, p_now timestamptz) RETURNS text
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $awa$
DECLARE
    v_row     record;
    v_pass    record;
    v_claim   record;
    v_receipt bigint;
BEGIN
    SELECT n.ready_slot, n.lane_id, n.xid, n.run_lease INTO v_row FROM /*schema*/awa.newest_ready_row(p_job) AS n;
    IF v_row.lane_id IS NULL THEN
        RETURN NULL;
    END IF;
    -- Under the lane's lock nobody can move the cursor; the next statement sees where it stands.
    IF NOT pg_try_advisory_xact_lock(/*schema*/awa.lane_key(v_row.lane_id)) THEN
        RETURN 'contended';
    END IF;
    SELECT p.seq, p.batch_id, p.member INTO v_pass
    FROM /*schema*/awa.passing(v_row.ready_slot, v_row.lane_id, v_row.xid, p_job) AS p;
    IF v_pass.seq IS NULL THEN
        INSERT INTO /*schema*/awa.ready_tombstones (lane_id, job_id, run_lease, cancelled_at, ready_slot, reason)
        VALUES (v_row.lane_id, p_job, v_row.run_lease, p_now, v_row.ready_slot, p_reason)
        ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        -- Final: the lane is held, so that no claim can emit the row any more, and every later one sees the tombstone.
        PERFORM /*schema*/awa.release_unique_keys(ARRAY[p_job], 64::smallint);
        PERFORM /*schema*/awa.forget_notes(ARRAY[p_job]);
        RETURN 'ready';
    END IF;
    v_receipt := (v_pass.batch_id << 10) + v_pass.member;
    SELECT o.claim_slot, o.nonce INTO v_claim
    FROM (SELECT c.claim_slot, c.nonce FROM /*schema*/awa.open_compact_claims AS c
          WHERE c.batch_id = v_pass.batch_id AND c.open @> v_receipt
          UNION ALL
          SELECT l.claim_slot, l.nonce FROM /*schema*/awa.open_row_claims AS l WHERE l.receipt_id = v_receipt) AS o;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM FROM /*schema*/awa.end_attempts(
        ARRAY[v_claim.claim_slot], ARRAY[v_claim.nonce], ARRAY[v_receipt], ARRAY[5::smallint], ARRAY['cancelled'],
        ARRAY[NULL::bigint], ARRAY[p_reason], ARRAY[NULL::json], p_now);
    RETURN CASE WHEN FOUND THEN 'running' ELSE 'contended' END;
END
$awa$;
