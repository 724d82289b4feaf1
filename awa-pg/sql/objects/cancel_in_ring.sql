-- Purpose: cancels one job whose newest ready row is still stored: by a tombstone when it waits to be claimed, by closing
--   its attempt when it runs.
-- Parameters: id; reason; the present.
-- Returns: 'ready' or 'running' when it was cancelled from there, 'contended' when somebody is claiming or ending it,
--   NULL when it is neither.
-- Locks: the advisory lock of its lane, only tried, kept to the end of the transaction; ROW EXCLUSIVE on the tables
--   written.
-- Caller: cancel_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.cancel_in_ring(p_job bigint, p_reason text, p_now timestamptz) RETURNS text
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_row   record;
    v_claim record;
BEGIN
    SELECT r.ready_slot, r.lane_id, r.xid, coalesce(r.run_lease, 0) AS run_lease INTO v_row
    FROM /*schema*/awa.ready_entries AS r WHERE r.job_id = p_job ORDER BY coalesce(r.run_lease, 0) DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    -- Under the lane's lock nobody can move the cursor; the next statement sees where it stands.
    IF NOT pg_try_advisory_xact_lock(/*schema*/awa.lane_key(v_row.lane_id)) THEN
        RETURN 'contended';
    END IF;
    PERFORM FROM /*schema*/awa.ready_claim_attempt_batches AS b
    WHERE b.ready_slot = v_row.ready_slot AND b.lane_id = v_row.lane_id
      AND b.seq = (SELECT max(n.seq) FROM /*schema*/awa.ready_claim_attempt_batches AS n
                   WHERE n.ready_slot = v_row.ready_slot AND n.lane_id = v_row.lane_id)
      AND /*schema*/awa.is_passed(b.seen, b.part_xids, b.part_jobs, v_row.xid, p_job);
    IF NOT FOUND THEN
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
    SELECT o.claim_slot, o.nonce, e.receipt_id INTO v_claim
    FROM /*schema*/awa.emitted_attempts AS e
    JOIN /*schema*/awa.open_claims AS o ON o.batch_id = e.batch_id AND o.open @> e.receipt_id
    WHERE e.ready_slot = v_row.ready_slot AND e.lane_id = v_row.lane_id AND e.job_id = p_job
      AND e.row_lease = v_row.run_lease;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM FROM /*schema*/awa.end_attempts(
        ARRAY[v_claim.claim_slot], ARRAY[v_claim.nonce], ARRAY[v_claim.receipt_id], ARRAY[5::smallint], ARRAY['cancelled'],
        ARRAY[NULL::bigint], ARRAY[p_reason], ARRAY[NULL::json], p_now);
    RETURN CASE WHEN FOUND THEN 'running' ELSE 'contended' END;
END
$awa$;
