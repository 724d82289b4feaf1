-- Purpose: claims jobs of one queue: the hot path of a worker, one statement in a transaction of its own.
-- Parameters: queue; claiming instance; nonce of this call; at most so many jobs; stop after the job that reaches so
--   many bytes of arguments (at most 128 MB); length of the deadline in microseconds or NULL; aging interval in microseconds or NULL (a
--   lane whose head has waited that long counts as one priority more urgent, down to 1); the present for tests; whether the
--   claim is recorded in a row of lease_claims per member instead of one of lease_claim_batches.
-- Returns: one row per batch (its claim_slot is 255 when its members are leases), with parallel arrays over its members, in the order in which they should start
--   (run_leases and attempts are those of the ready rows, NULL: all 0; metadata NULL: none has any); and always one
--   last row with batch_id NULL that tells whether a lane was held by somebody else (contended), whether the call
--   stopped at a limit of its own (more), and below which transaction everything was visible (horizon).
-- Locks: ACCESS SHARE on the children of the undrained slots; per lane an advisory lock that is only tried; ROW
--   EXCLUSIVE on one child of lease_claim_batches, or of lease_claims. Nothing when there is nothing to claim. carried_entries and leases
--   are opened only while something is carried over.
-- Caller: Consumer::claim, other languages.
-- depends on: home_cluster
CREATE OR REPLACE FUNCTION /*schema*/awa.claim_jobs(
    p_queue text, p_instance bigint, p_nonce bigint, p_max_jobs integer, p_max_bytes bigint,
    p_deadline_us bigint DEFAULT NULL, p_aging_us bigint DEFAULT NULL, p_now timestamptz DEFAULT NULL,
    p_row_local boolean DEFAULT false)
RETURNS TABLE (
    batch_id bigint, claim_slot smallint, priority smallint, claimed_at timestamptz, deadline_at timestamptz,
    job_ids bigint[], run_leases bigint[], attempts smallint[], max_attempts smallint[], created_ats timestamptz[],
    kinds text[], args json[], metadata json[], contended boolean, more boolean, horizon bigint)
LANGUAGE plpgsql VOLATILE
SET jit = off SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $awa$
#variable_conflict use_column
DECLARE
    -- A call takes from so many slots, and looks for a lane in no more.
    c_slots     CONSTANT integer := 2;
    v_snapshot  pg_snapshot;
    v_current   smallint;
    v_undrained smallint[];
    v_wanted    bigint[];
    v_kept      smallint[];
    v_looked    integer := 0;
    v_is_cut    boolean := false;
    v_slot      smallint;
    v_lane      bigint;
    v_left_out  bigint;
    v_priority  smallint;
    v_deadline  timestamptz;
    v_steps     smallint[];
    v_peek      record;
    v_all       bigint[];
    v_ranks     smallint[];
    v_lanes     bigint[];
    v_heads     timestamptz[];
    v_lasts     bigint[];
    v_slots     smallint[];
    v_ready     smallint;
    v_touched   smallint[] := '{}';
    v_claim     record;
    v_entered   smallint;
    v_holder    smallint;
    v_carries   boolean;
    v_floor     xid8;
    v_left      integer := p_max_jobs;
    v_bytes     bigint := least(p_max_bytes, 134217728);
    v_now       timestamptz := coalesce(p_now, clock_timestamp());
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' OR pg_current_xact_id_if_assigned() IS NOT NULL THEN
        RAISE EXCEPTION 'claim_jobs must be a READ COMMITTED statement of its own' USING ERRCODE = 'AW003', CONSTRAINT = 'AW003',
            HINT = 'inside another transaction a claim would hold its lanes until that transaction ends';
    END IF;
    -- As in assert_same_cluster, which a session that has found itself at home need not call.
    IF current_setting('awa.cluster', true) IS DISTINCT FROM /*schema*/awa.home_cluster()::text THEN
        PERFORM /*schema*/awa.assert_same_cluster();
    END IF;
    -- A claim of no jobs would pass over what it does not hand out.
    IF coalesce(p_max_jobs NOT BETWEEN 1 AND 1023, true) OR coalesce(p_max_bytes < 1, true) THEN
        RAISE EXCEPTION 'claim_jobs takes 1 to 1023 jobs and at least 1 byte, not % and %', p_max_jobs, p_max_bytes
            USING ERRCODE = 'AW003', CONSTRAINT = 'AW003',
                HINT = 'do not call it while there is no room for a job';
    END IF;
    contended := false;
    more := false;
    v_snapshot := /*schema*/awa.own_snapshot();
    -- What is there to do? Rows that were carried over go first in their lane, then undrained slots, oldest first, but for those
    -- known to have none of the lanes, and the pointer's own even if its rotation is not visible yet.
    SELECT q.lanes, q.ranks, q.pointer & 63,
           ARRAY(SELECT s.slot FROM /*schema*/awa.queue_ring_slots AS s
                 WHERE s.slot = q.pointer & 63 OR s.state = 'open'
                    OR s.state = 'sealed' AND coalesce(s.lanes && q.lanes, true)
                 ORDER BY s.slot = q.pointer & 63, s.generation)
    INTO v_all, v_ranks, v_current, v_undrained
    FROM (SELECT array_agg(l.lane_id) AS lanes, array_agg(l.priority) AS ranks,
                 (SELECT p.last_value FROM /*schema*/awa.queue_ring_pointer AS p) AS pointer
          FROM /*schema*/awa.queue_lanes AS l WHERE l.queue = p_queue AND NOT l.paused) AS q;
    v_wanted := v_all;
    v_carries := pg_relation_size('/*schema*/awa.carried_entries') > 0;
    IF v_carries THEN
        v_floor := /*schema*/awa.carried_floor();
        SELECT array_agg(w.lane), array_agg(c.created_at), array_agg(NULL::bigint), array_agg((-1)::smallint)
        INTO v_lanes, v_heads, v_lasts, v_slots
        FROM unnest(v_all) AS w (lane)
        CROSS JOIN LATERAL (SELECT e.created_at FROM /*schema*/awa.carried_entries AS e
                            WHERE e.lane_id = w.lane AND e.moved_xid >= v_floor
                            ORDER BY e.moved_xid, e.xid, e.job_id LIMIT 1) AS c;
    END IF;
    FOR v_at IN 1..cardinality(v_undrained) LOOP
        v_slot := v_undrained[v_at];
        CONTINUE WHEN v_kept IS NOT NULL AND NOT v_slot = ANY (v_kept);
        CASE v_slot
        -- each queue slot:
        WHEN 0/*slot*/ THEN v_peek := /*schema*/awa.peek_lanes_0/*slot*/(v_wanted, v_snapshot);
        -- end each
        ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_slot, true);
        END CASE;
        IF v_peek.doubtful IS NOT NULL THEN
            -- No claim would come to look at them.
            PERFORM /*schema*/awa.assert_cursors(v_slot, v_peek.doubtful, v_peek.doubtful_seqs);
        END IF;
        CONTINUE WHEN v_peek.lanes IS NULL;
        v_lanes := v_lanes || v_peek.lanes;
        v_heads := v_heads || v_peek.heads;
        v_lasts := v_lasts || v_peek.last_batches;
        v_slots := v_slots || array_fill(v_slot, ARRAY[cardinality(v_peek.lanes)]);
        v_looked := v_looked + 1;
        -- While there are slots between this one and the pointer's.
        IF v_looked >= c_slots AND v_at < cardinality(v_undrained) - 1 THEN
            v_wanted := ARRAY(
                SELECT w.lane FROM unnest(v_all) AS w (lane)
                WHERE (SELECT count(*) FROM unnest(v_lanes, v_slots) AS f (lane, slot)
                       WHERE f.lane = w.lane AND f.slot >= 0) < c_slots);
            IF cardinality(v_wanted) < cardinality(v_all) THEN
                v_kept := ARRAY(SELECT s.slot FROM /*schema*/awa.queue_ring_slots AS s
                                WHERE s.slot = ANY (v_undrained)
                                  AND (s.slot = v_current OR s.state <> 'sealed' OR coalesce(s.lanes && v_wanted, true)));
                v_is_cut := true;
            END IF;
        END IF;
    END LOOP;
    IF v_lanes IS NOT NULL THEN
        IF current_setting('synchronous_commit') IN ('off', 'local') THEN
            PERFORM set_config('synchronous_commit', 'on', true);
        END IF;
        -- One lane in the pointer's slot needs no choice.
        IF cardinality(v_lanes) > 1 OR v_slots[1] <> v_current THEN
            -- The children are locked since the peek; a slot that reads free now was reclaimed before that.
            SELECT array_agg(g.lane ORDER BY g.rank, g.last, g.lane, g.o), array_agg(g.slot ORDER BY g.rank, g.last, g.lane, g.o)
            INTO v_lanes, v_slots
            FROM (SELECT w.lane, w.slot, w.o,
                         -- The head may be younger than now, by a clock that was set back.
                         min(greatest(1, l.priority - CASE WHEN p_aging_us IS NULL THEN 0
                             ELSE greatest(0, floor(extract(epoch FROM v_now - w.head) * 1000000 / p_aging_us)) END))
                             OVER (PARTITION BY w.lane) AS rank,
                         max(coalesce(w.last, 0)) OVER (PARTITION BY w.lane) AS last
                  FROM unnest(v_lanes, v_heads, v_lasts, v_slots) WITH ORDINALITY AS w (lane, head, last, slot, o)
                  JOIN unnest(v_all, v_ranks) AS l (lane, priority) ON l.lane = w.lane
                  LEFT JOIN /*schema*/awa.queue_ring_slots AS s ON s.slot = w.slot
                  WHERE s.state <> 'free' OR s.slot = v_current OR w.slot < 0) AS g;
        END IF;
        -- The slots of a lane stand together, in their order.
        FOR v_at IN 1..coalesce(cardinality(v_lanes), 0) LOOP
            CONTINUE WHEN v_lanes[v_at] = v_left_out;
            v_steps := v_slots[v_at:v_at];
            IF v_lane IS DISTINCT FROM v_lanes[v_at] THEN
                v_lane := v_lanes[v_at];
                IF NOT pg_try_advisory_xact_lock(/*schema*/awa.lane_key(v_lane)) THEN
                    contended := true;
                    v_left_out := v_lane;
                    CONTINUE;
                END IF;
                SELECT l.priority INTO v_priority FROM /*schema*/awa.queue_lanes AS l
                WHERE l.queue = p_queue AND l.lane_id = v_lane AND NOT l.paused;
                IF NOT FOUND THEN
                    v_left_out := v_lane;
                    CONTINUE;
                END IF;
                -- Before a batch is numbered: a batch whose number is not above after_batch of a slot is older than the slot's
                -- generation (see is_over).
                IF v_entered IS NULL THEN
                    v_entered := /*schema*/awa.enter_claim_slot(p_row_local);
                    v_deadline := v_now + p_deadline_us * interval '1 microsecond';
                END IF;
                -- Again under the lock, whatever the peek has seen: rows may have been moved out of the ring meanwhile.
                IF v_steps[1] >= 0 AND (v_carries OR pg_relation_size('/*schema*/awa.carried_entries') > 0) THEN
                    v_steps := (-1)::smallint || v_steps;
                END IF;
            END IF;
            FOREACH v_ready IN ARRAY v_steps LOOP
                IF v_ready >= 0 AND NOT v_ready = ANY (v_touched) THEN
                    IF cardinality(v_touched) >= c_slots THEN
                        more := true;
                        v_left_out := v_lane;
                        EXIT;
                    END IF;
                    v_touched := v_touched || v_ready;
                END IF;
                CASE v_ready
                WHEN -1 THEN
                    SELECT c.members, 0::bigint AS seq, c.bytes, c.batch_id, c.job_ids, c.run_leases, c.attempts, c.max_attempts,
                           c.created_ats, c.kinds, c.args, c.metadata, c.is_full
                    INTO v_claim
                    FROM /*schema*/awa.claim_carried(
                        v_lane, v_left, v_bytes, p_instance, p_nonce, v_now, v_deadline) AS c;
                -- each queue slot:
                WHEN 0/*slot*/ THEN
                    v_claim := /*schema*/awa.claim_lane_0/*slot*/(v_lane, v_snapshot, v_left, v_bytes);
                -- end each
                ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_ready, true);
                END CASE;
                CONTINUE WHEN v_claim.members = 0;
                IF v_ready < 0 THEN
                    v_holder := 255;
                ELSE
                    v_holder := v_entered;
                    CASE v_entered
                    -- each claim slot:
                    WHEN 0/*slot*/ THEN
                        IF p_row_local THEN
                            PERFORM /*schema*/awa.record_row_claims_in_0/*slot*/(
                                v_claim.batch_id, v_lane, v_claim.seq, v_ready, v_claim.job_ids, v_claim.run_leases,
                                p_instance, p_nonce, v_now, v_deadline);
                        ELSE
                            PERFORM /*schema*/awa.record_claim_in_0/*slot*/(v_claim.batch_id, v_lane, v_claim.seq, v_ready,
                                v_claim.members, p_instance, p_nonce, v_now, v_deadline);
                        END IF;
                    -- end each
                    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', v_entered, true);
                    END CASE;
                END IF;
                RETURN QUERY SELECT
                    v_claim.batch_id, v_holder, v_priority, v_now, v_deadline, v_claim.job_ids, v_claim.run_leases,
                    v_claim.attempts, v_claim.max_attempts, v_claim.created_ats, v_claim.kinds, v_claim.args, v_claim.metadata,
                    contended, more, NULL::bigint;
                IF pg_relation_size('/*schema*/awa.unique_claims') > 0 THEN
                    PERFORM /*schema*/awa.release_claimed_keys(v_claim.job_ids);
                END IF;
                v_left := v_left - v_claim.members;
                v_bytes := v_bytes - v_claim.bytes;
                -- What is left of what was carried over, or of a slot, comes before the next one. The ring knows of itself
                -- that a limit was reached; behind what was carried over there may be more.
                more := more OR v_claim.is_full OR v_ready < 0 AND (v_left <= 0 OR v_bytes <= 0);
                IF v_claim.is_full OR v_left <= 0 OR v_bytes <= 0 THEN
                    v_left_out := v_lane;
                    EXIT;
                END IF;
            END LOOP;
            EXIT WHEN v_left <= 0 OR v_bytes <= 0;
        END LOOP;
        -- There may be more in slots that were not looked into, also when somebody else was faster in those that were.
        more := more OR v_is_cut AND (v_left < p_max_jobs OR NOT contended);
    END IF;
    horizon := pg_snapshot_xmin(v_snapshot)::text::bigint;
    RETURN NEXT;
END
$awa$;
