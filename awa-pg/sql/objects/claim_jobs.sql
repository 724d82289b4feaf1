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
    v_snapshot  pg_snapshot;
    v_pointer   bigint;
    v_slot      record;
    v_lane      record;
    v_peek      record;
    v_all       bigint[];
    v_ranks     smallint[];
    v_lanes     bigint[];
    v_heads     timestamptz[];
    v_lasts     bigint[];
    v_slots     smallint[];
    v_work      record;
    v_ready     smallint;
    v_touched   smallint[] := '{}';
    v_claim     record;
    v_entered   smallint;
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
    PERFORM /*schema*/awa.assert_same_cluster();
    -- A claim of no jobs would pass over what it does not hand out.
    IF coalesce(p_max_jobs NOT BETWEEN 1 AND 1023, true) OR coalesce(p_max_bytes < 1, true) THEN
        RAISE EXCEPTION 'claim_jobs takes 1 to 1023 jobs and at least 1 byte, not % and %', p_max_jobs, p_max_bytes
            USING ERRCODE = 'AW003', CONSTRAINT = 'AW003',
                HINT = 'do not call it while there is no room for a job';
    END IF;
    contended := false;
    more := false;
    v_snapshot := /*schema*/awa.own_snapshot();
    SELECT last_value INTO v_pointer FROM /*schema*/awa.queue_ring_pointer;
    -- What is there to do? Rows that were carried over go first in their lane.
    SELECT array_agg(l.lane_id), array_agg(l.priority) INTO v_all, v_ranks
    FROM /*schema*/awa.queue_lanes AS l WHERE l.queue = p_queue AND NOT l.paused;
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
    -- Then undrained slots, oldest first, and the pointer's own even if its rotation is not visible yet.
    FOR v_slot IN
        SELECT s.slot FROM /*schema*/awa.queue_ring_slots AS s
        WHERE s.state IN ('open', 'sealed') OR s.slot = (v_pointer & 63)
        ORDER BY s.slot = (v_pointer & 63), s.generation
    LOOP
        CASE v_slot.slot
        -- each queue slot:
        WHEN 0/*slot*/ THEN v_peek := /*schema*/awa.peek_lanes_0/*slot*/(v_all, v_snapshot);
        -- end each
        ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_slot.slot, true);
        END CASE;
        IF v_peek.doubtful IS NOT NULL THEN
            -- No claim would come to look at them.
            PERFORM /*schema*/awa.assert_cursors(v_slot.slot, v_peek.doubtful, v_peek.doubtful_seqs);
        END IF;
        CONTINUE WHEN v_peek.lanes IS NULL;
        v_lanes := v_lanes || v_peek.lanes;
        v_heads := v_heads || v_peek.heads;
        v_lasts := v_lasts || v_peek.last_batches;
        v_slots := v_slots || array_fill(v_slot.slot, ARRAY[cardinality(v_peek.lanes)]);
    END LOOP;
    IF v_lanes IS NOT NULL THEN
        IF current_setting('synchronous_commit') IN ('off', 'local') THEN
            PERFORM set_config('synchronous_commit', 'on', true);
        END IF;
        -- The children are locked since the peek; a slot that reads free now was reclaimed before that.
        FOR v_work IN
            SELECT w.lane, coalesce(array_agg(w.slot ORDER BY w.o) FILTER (WHERE w.slot >= 0), '{}') AS slots
            FROM unnest(v_lanes, v_heads, v_lasts, v_slots) WITH ORDINALITY AS w (lane, head, last, slot, o)
            JOIN unnest(v_all, v_ranks) AS l (lane, priority) ON l.lane = w.lane
            LEFT JOIN /*schema*/awa.queue_ring_slots AS s ON s.slot = w.slot
            WHERE s.state <> 'free' OR s.slot = (v_pointer & 63) OR w.slot < 0
            GROUP BY w.lane
            -- The head may be younger than now, by a clock that was set back.
            ORDER BY min(greatest(1, l.priority - CASE WHEN p_aging_us IS NULL THEN 0
                         ELSE greatest(0, floor(extract(epoch FROM v_now - w.head) * 1000000 / p_aging_us)) END)),
                     max(coalesce(w.last, 0))
        LOOP
            IF NOT pg_try_advisory_xact_lock(/*schema*/awa.lane_key(v_work.lane)) THEN
                contended := true;
                CONTINUE;
            END IF;
            SELECT l.priority INTO v_lane FROM /*schema*/awa.queue_lanes AS l
            WHERE l.queue = p_queue AND l.lane_id = v_work.lane AND NOT l.paused;
            CONTINUE WHEN NOT FOUND;
            -- Before a batch is numbered: a batch whose number is not above after_batch of a slot is older than the slot's
            -- generation (see is_over).
            IF v_entered IS NULL THEN
                v_entered := /*schema*/awa.enter_claim_slot(p_row_local);
                claimed_at := v_now;
                deadline_at := v_now + p_deadline_us * interval '1 microsecond';
            END IF;
            -- Again under the lock, whatever the peek has seen: rows may have been moved out of the ring meanwhile.
            IF v_carries OR pg_relation_size('/*schema*/awa.carried_entries') > 0 THEN
                v_work.slots := (-1)::smallint || v_work.slots;
            END IF;
            FOREACH v_ready IN ARRAY v_work.slots LOOP
                IF v_ready >= 0 AND NOT v_ready = ANY (v_touched) THEN
                    IF cardinality(v_touched) >= 2 THEN
                        more := true;
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
                        v_work.lane, v_left, v_bytes, p_instance, p_nonce, v_now, deadline_at) AS c;
                -- each queue slot:
                WHEN 0/*slot*/ THEN
                    SELECT c.members, c.seq, c.bytes, c.batch_id, c.job_ids, c.run_leases, c.attempts, c.max_attempts, c.created_ats,
                           c.kinds, c.args, c.metadata, c.is_full
                    INTO v_claim
                    FROM /*schema*/awa.claim_lane_0/*slot*/(v_work.lane, v_snapshot, v_left, v_bytes) AS c;
                -- end each
                ELSE PERFORM /*schema*/awa.refuse_unknown_slot('queue', v_ready, true);
                END CASE;
                CONTINUE WHEN v_claim.members = 0;
                IF v_ready < 0 THEN
                    claim_slot := 255;
                ELSE
                    claim_slot := v_entered;
                    CASE v_entered
                    -- each claim slot:
                    WHEN 0/*slot*/ THEN
                        IF p_row_local THEN
                            PERFORM /*schema*/awa.record_row_claims_in_0/*slot*/(
                                v_claim.batch_id, v_work.lane, v_claim.seq, v_ready, v_claim.job_ids, v_claim.run_leases,
                                p_instance, p_nonce, v_now, deadline_at);
                        ELSE
                            PERFORM /*schema*/awa.record_claim_in_0/*slot*/(v_claim.batch_id, v_work.lane, v_claim.seq, v_ready,
                                v_claim.members, p_instance, p_nonce, v_now, deadline_at);
                        END IF;
                    -- end each
                    ELSE PERFORM /*schema*/awa.refuse_unknown_slot('claim', v_entered, true);
                    END CASE;
                END IF;
                batch_id := v_claim.batch_id;
                priority := v_lane.priority;
                job_ids := v_claim.job_ids;
                run_leases := v_claim.run_leases;
                attempts := v_claim.attempts;
                max_attempts := v_claim.max_attempts;
                created_ats := v_claim.created_ats;
                kinds := v_claim.kinds;
                args := v_claim.args;
                metadata := v_claim.metadata;
                RETURN NEXT;
                IF pg_relation_size('/*schema*/awa.unique_claims') > 0 THEN
                    PERFORM /*schema*/awa.release_claimed_keys(job_ids);
                END IF;
                v_left := v_left - v_claim.members;
                v_bytes := v_bytes - v_claim.bytes;
                -- What is left of what was carried over, or of a slot, comes before the next one. The ring knows of itself
                -- that a limit was reached; behind what was carried over there may be more.
                more := more OR v_claim.is_full OR v_ready < 0 AND (v_left <= 0 OR v_bytes <= 0);
                EXIT WHEN v_claim.is_full OR v_left <= 0 OR v_bytes <= 0;
            END LOOP;
            EXIT WHEN v_left <= 0 OR v_bytes <= 0;
        END LOOP;
    END IF;
    batch_id := NULL;
    claim_slot := NULL;
    job_ids := NULL;
    run_leases := NULL;
    attempts := NULL;
    max_attempts := NULL;
    created_ats := NULL;
    kinds := NULL;
    args := NULL;
    metadata := NULL;
    horizon := pg_snapshot_xmin(v_snapshot)::text::bigint;
    RETURN NEXT;
END
$awa$;
