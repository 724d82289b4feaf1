-- Purpose: rewrites the claims and closures of before the rings into the open slot of the claim ring, in the row-local
--   shape, and drops the old tables. They are evidence of what ran: no ready row belongs to them, so a claim without a
--   closure cannot be given back to a worker and is closed as rescued. Columns beyond (job_id, run_lease, claimed_at) and
--   (job_id, run_lease, outcome, closed_at) are optional: deadline_at of a claim is kept, others are not.
-- Parameters: none.
-- Returns: nothing; the transaction-local setting awa.pre_ring holds how many claims, closures and closed claims there
--   were.
-- Locks: those of the tables written and dropped.
-- Caller: prepare_schema, after the migrations.
DO $awa$
DECLARE
    v_slot     smallint;
    v_unknown  text;
    v_claims   bigint;
    v_closures bigint;
    v_written  bigint;
    v_closed   bigint;
BEGIN
    IF to_regclass('/*schema*/awa.pre_ring_lease_claims') IS NULL THEN
        RETURN;
    END IF;
    SELECT string_agg(DISTINCT quote_nullable(c.outcome), ', ') INTO v_unknown
    FROM /*schema*/awa.pre_ring_lease_claim_closures AS c
    WHERE coalesce(c.outcome, '') NOT IN ('completed', 'retried', 'retryable', 'snoozed', 'failed', 'cancelled', 'released',
        'rescued', 'stale_rescued', 'deadline_expired');
    IF v_unknown IS NOT NULL THEN
        RAISE EXCEPTION 'lease_claim_closures holds outcomes that this version does not know: %', v_unknown
            USING ERRCODE = 'AW001', CONSTRAINT = 'AW001',
                HINT = 'correct or remove those rows, then run `awa migrate` again; nothing was changed';
    END IF;
    SELECT (p.last_value & 63)::smallint INTO v_slot FROM /*schema*/awa.claim_ring_pointer AS p;
    SELECT count(*) INTO v_claims FROM /*schema*/awa.pre_ring_lease_claims;
    SELECT count(*) INTO v_closures FROM /*schema*/awa.pre_ring_lease_claim_closures;
    WITH claims AS (
        SELECT (nextval('/*schema*/awa.batch_id_seq') << 10) + 1 AS receipt, c.job_id, c.run_lease, c.claimed_at,
               c.deadline_at::timestamptz
        FROM (SELECT o.job_id, o.run_lease, o.claimed_at, to_jsonb(o) ->> 'deadline_at' AS deadline_at
              FROM /*schema*/awa.pre_ring_lease_claims AS o ORDER BY o.claimed_at, o.job_id, o.run_lease) AS c
    ), paired AS (
        SELECT coalesce(c.receipt, (nextval('/*schema*/awa.batch_id_seq') << 10) + 1) AS receipt,
               coalesce(c.job_id, e.job_id) AS job_id, coalesce(c.run_lease, e.run_lease) AS run_lease, c.claimed_at,
               c.deadline_at, coalesce(e.closed_at, clock_timestamp()) AS closed_at, c.receipt IS NOT NULL AS is_claimed,
               CASE e.outcome WHEN 'completed' THEN 1 WHEN 'retried' THEN 2 WHEN 'retryable' THEN 2 WHEN 'snoozed' THEN 3
                   WHEN 'failed' THEN 4 WHEN 'cancelled' THEN 5 WHEN 'released' THEN 6
                   WHEN 'deadline_expired' THEN 8 ELSE 7 END::smallint AS outcome,
               e.job_id IS NULL AS was_open
        FROM claims AS c
        FULL JOIN /*schema*/awa.pre_ring_lease_claim_closures AS e ON e.job_id = c.job_id AND e.run_lease = c.run_lease
    ), claimed AS (
        INSERT INTO /*schema*/awa.lease_claims (
            receipt_id, job_id, run_lease, lane_id, attempt_seq, claimed_at, instance_id, nonce, claim_slot, ready_slot,
            deadline_at, closed_at)
        SELECT p.receipt, p.job_id, p.run_lease, 0, 0, p.claimed_at, 0, 0, v_slot, 0, p.deadline_at, p.closed_at
        FROM paired AS p WHERE p.is_claimed
        RETURNING receipt_id
    ), closed AS (
        INSERT INTO /*schema*/awa.lease_claim_closures (
            receipt_id, job_id, run_lease, closed_at, claim_slot, ready_slot, outcome)
        SELECT p.receipt, p.job_id, p.run_lease, p.closed_at, v_slot, 0, p.outcome FROM paired AS p
        RETURNING receipt_id
    )
    SELECT (SELECT count(*) FROM claimed) + (SELECT count(*) FROM closed), count(*) FILTER (WHERE p.was_open)
    INTO v_written, v_closed FROM paired AS p;
    IF v_written <> v_claims + v_closures + v_closed THEN
        RAISE EXCEPTION 'of % claims and % closures of before the rings % rows were made', v_claims, v_closures, v_written
            USING ERRCODE = 'AW001', CONSTRAINT = 'AW001',
                HINT = 'look for rows of one job and lease that are there twice; nothing was changed';
    END IF;
    -- Jobs of the older version must not share their ids with new ones.
    PERFORM setval('/*schema*/awa.job_id_seq', m.newest)
    FROM (SELECT max(c.job_id) AS newest FROM /*schema*/awa.lease_claim_closures AS c) AS m
    CROSS JOIN /*schema*/awa.job_id_seq AS s WHERE m.newest >= s.last_value;
    DROP TABLE /*schema*/awa.pre_ring_lease_claims, /*schema*/awa.pre_ring_lease_claim_closures;
    PERFORM set_config('awa.pre_ring', concat_ws(' ', v_claims, v_closures, v_closed), true);
END
$awa$
