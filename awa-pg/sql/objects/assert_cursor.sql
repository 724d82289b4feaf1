-- Purpose: refuses a cursor that no claim has written: a row of ready_claim_attempt_batches that was changed or removed by
--   hand. Called for a cursor that looks like one, and looks again: the snapshot of the caller may be older than the cursor.
-- Parameters: slot, lane, sequence of the row.
-- Returns: nothing; an error that names slot, lane and sequence when the row is damaged. What it would have emitted is not
--   guessed.
-- Locks: ACCESS SHARE on ready_claim_attempt_batches and queue_ring_pointer.
-- Caller: claim_lane_0, assert_cursors.
CREATE OR REPLACE FUNCTION /*schema*/awa.assert_cursor(p_slot smallint, p_lane bigint, p_seq bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_row   record;
    v_fault text;
BEGIN
    SELECT b.seen, b.part_xids, b.part_jobs, b.batch_id, b.first_xid, b.job_id, b.job_ids, b.run_leases,
           (SELECT max(n.seq) FROM /*schema*/awa.ready_claim_attempt_batches AS n
            WHERE n.ready_slot = p_slot AND n.lane_id = p_lane AND n.seq < p_seq) AS before
    INTO v_row FROM /*schema*/awa.ready_claim_attempt_batches AS b
    WHERE b.ready_slot = p_slot AND b.lane_id = p_lane AND b.seq = p_seq;
    v_fault := CASE
        WHEN p_seq <> coalesce(v_row.before, 0) + 1
            THEN format('the row before it is %s', coalesce('seq ' || v_row.before, 'missing'))
        -- It would hide what is appended from now on. In an older slot nothing is, and a schema that was repaired after a
        -- move to another cluster has such cursors there, for the attempts that still run.
        WHEN pg_snapshot_xmax(v_row.seen) > pg_snapshot_xmax(pg_current_snapshot())
                AND p_slot = ((SELECT p.last_value FROM /*schema*/awa.queue_ring_pointer AS p) & 63)
            THEN 'it has passed transactions that have not begun'
        WHEN cardinality(v_row.part_xids) IS DISTINCT FROM cardinality(v_row.part_jobs)
            THEN 'part_xids and part_jobs differ in length'
        WHEN EXISTS (SELECT FROM unnest(v_row.part_xids, v_row.part_jobs) AS p (xid, job)
                     WHERE p.xid IS NULL OR p.job IS NULL)
            THEN 'part_xids and part_jobs have gaps'
        WHEN cardinality(v_row.run_leases) <> cardinality(coalesce(v_row.job_ids, ARRAY[v_row.job_id]))
            THEN 'job_ids and run_leases differ in length'
        WHEN v_row.batch_id IS NOT NULL
                AND (v_row.first_xid IS NULL OR (v_row.job_id IS NULL) = (v_row.job_ids IS NULL))
            THEN 'it has a batch and not its jobs' END;
    IF v_fault IS NOT NULL THEN
        RAISE EXCEPTION 'the cursor of lane % in queue slot % is damaged at seq %: %', p_lane, p_slot, p_seq, v_fault
            USING ERRCODE = 'AW002', CONSTRAINT = 'AW002', HINT = 'a row of ready_claim_attempt_batches was changed by hand; nothing of this lane '
                'is handed out until it is as it was';
    END IF;
END
$awa$;
