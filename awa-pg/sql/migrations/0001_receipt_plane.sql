-- additive
--
-- Purpose: the tables of the receipt plane. The ring tables are partitioned by slot; their children are named
--   <table>_<slot>, are only ever appended to and are reclaimed by TRUNCATE, so that vacuum has no work there.
--   Hot functions address the children directly; the parents serve views and operators.
--
-- Columns are ordered by alignment, widest first: it saves 8 to 16 bytes in each row of the hot tables.
-- Nullable columns of hot tables are NULL in the common case.

-- ---------------------------------------------------------------------------------------------------------------
-- Identities
-- ---------------------------------------------------------------------------------------------------------------

CREATE SEQUENCE /*schema*/awa.job_id_seq AS bigint;
CREATE SEQUENCE /*schema*/awa.batch_id_seq AS bigint MAXVALUE 9007199254740991;

-- One lane per (queue, priority, shard); lane_id is the function lane_id() of the three, never allocated.
-- Workers and maintenance create lanes; an enqueue never does.
CREATE TABLE /*schema*/awa.queue_lanes (
    lane_id    bigint      NOT NULL PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    priority   smallint    NOT NULL CHECK (priority BETWEEN 1 AND 4),
    shard      smallint    NOT NULL CHECK (shard >= 0),
    paused     boolean     NOT NULL DEFAULT false,
    queue      text        NOT NULL CHECK (octet_length(queue) BETWEEN 1 AND 200),
    UNIQUE (queue, priority, shard)
);

-- Lanes that an enqueue did not find. No key: two first uses of a queue must not wait for each other.
CREATE TABLE /*schema*/awa.lane_hints (
    lane_id  bigint   NOT NULL,
    priority smallint NOT NULL,
    shard    smallint NOT NULL,
    queue    text     NOT NULL
);

-- ---------------------------------------------------------------------------------------------------------------
-- Control of the rings. One row per slot, changed only by rotate, drain and prune (and the sweeps, for their
-- cursors); no index, because a claim reads all of it and would lock the index as well.
-- ---------------------------------------------------------------------------------------------------------------

CREATE TABLE /*schema*/awa.queue_ring_slots (
    generation bigint      NOT NULL,
    opened_at  timestamptz,
    sealed_at  timestamptz,
    slot       smallint    NOT NULL,
    state      text        NOT NULL CHECK (state IN ('free', 'open', 'sealed', 'drained'))
) WITH (fillfactor = 50);

CREATE TABLE /*schema*/awa.claim_ring_slots (
    generation               bigint      NOT NULL,
    opened_at                timestamptz,
    sealed_at                timestamptz,
    -- The stale sweep stands behind this (claimed_at, batch); while it is held there, the visit has come to resume.
    stale_cursor_at          timestamptz,
    stale_cursor_batch       bigint,
    stale_resume_at          timestamptz,
    stale_resume_batch       bigint,
    -- The deadline sweep over row-local claims stands behind this (deadline_at, job_id, run_lease).
    deadline_cursor_at       timestamptz,
    deadline_cursor_job      bigint,
    deadline_cursor_lease    bigint,
    -- The deadline sweep over batches stands behind this (deadline_at, batch).
    batch_deadline_cursor_at timestamptz,
    batch_deadline_cursor_batch bigint,
    batch_deadline_resume_at timestamptz,
    batch_deadline_resume_batch bigint,
    slot                     smallint    NOT NULL,
    state                    text        NOT NULL CHECK (state IN ('free', 'open', 'sealed'))
) WITH (fillfactor = 50);

-- History of openings. The primary key makes a rotation a compare-and-swap.
CREATE TABLE /*schema*/awa.queue_ring_rotations (
    generation bigint      NOT NULL PRIMARY KEY,
    opened_at  timestamptz NOT NULL,
    slot       smallint    NOT NULL
);
CREATE TABLE /*schema*/awa.claim_ring_rotations (
    generation bigint      NOT NULL PRIMARY KEY,
    opened_at  timestamptz NOT NULL,
    slot       smallint    NOT NULL
);

-- Where writers go now: generation * 64 + slot. A sequence, because its value is not subject to snapshots: a
-- REPEATABLE READ producer sees a rotation at once.
CREATE SEQUENCE /*schema*/awa.queue_ring_pointer AS bigint;
CREATE SEQUENCE /*schema*/awa.claim_ring_pointer AS bigint;

-- ---------------------------------------------------------------------------------------------------------------
-- Queue ring: jobs that wait, the cursor over them, and how they ended
-- ---------------------------------------------------------------------------------------------------------------

-- A job that may be claimed. run_lease and attempt are NULL (meaning 0) on a first append.
CREATE TABLE /*schema*/awa.ready_entries (
    lane_id      bigint      NOT NULL,
    xid          xid8        NOT NULL,
    job_id       bigint      NOT NULL,
    created_at   timestamptz NOT NULL,
    ready_slot   smallint    NOT NULL,
    max_attempts smallint    NOT NULL,
    attempt      smallint,
    run_lease    bigint,
    kind         text        NOT NULL,
    args         json        NOT NULL,
    metadata     json,
    last_error   text
) PARTITION BY LIST (ready_slot);

-- The cursor of a lane in a slot, and at the same time the list of what each claim emitted: the row with the highest
-- seq is the frontier (seen, parts). One row per claim; UNIQUE (lane_id, seq) refuses a second claim from one state.
CREATE TABLE /*schema*/awa.ready_claim_attempt_batches (
    lane_id    bigint      NOT NULL,
    seq        bigint      NOT NULL,
    batch_id   bigint,                     -- NULL: nothing was emitted
    first_xid  xid8,                       -- of the emitted rows
    last_xid   xid8,                       -- NULL: as first_xid
    job_id     bigint,                     -- emitted alone; its receipt is batch_id << 10 | 1
    ready_slot smallint    NOT NULL,
    seen       pg_snapshot NOT NULL,       -- transactions whose rows have all been taken
    part_xids  xid8[],                     -- partially taken transactions, and up to which job
    part_jobs  bigint[],
    job_ids    bigint[],                   -- emitted together, in order; member i has receipt batch_id << 10 | i
    run_leases bigint[]                    -- of the emitted ready rows; NULL: all 0
) PARTITION BY LIST (ready_slot);

-- A ready row that was cancelled before it was claimed, known by (job_id, run_lease of the row).
CREATE TABLE /*schema*/awa.ready_tombstones (
    lane_id      bigint      NOT NULL,
    job_id       bigint      NOT NULL,
    run_lease    bigint      NOT NULL,
    cancelled_at timestamptz NOT NULL,
    ready_slot   smallint    NOT NULL,
    reason       text        NOT NULL
) PARTITION BY LIST (ready_slot);

-- The wide form of a finished job: everything about it, in the slot that was open when it ended.
CREATE TABLE /*schema*/awa.done_entries (
    job_id       bigint      NOT NULL,
    run_lease    bigint      NOT NULL,
    created_at   timestamptz NOT NULL,
    claimed_at   timestamptz,
    finalized_at timestamptz NOT NULL,
    done_slot    smallint    NOT NULL,
    priority     smallint    NOT NULL,
    shard        smallint    NOT NULL,
    attempt      smallint    NOT NULL,
    max_attempts smallint    NOT NULL,
    state        text        NOT NULL CHECK (state IN ('completed', 'failed', 'cancelled')),
    queue        text        NOT NULL,
    kind         text        NOT NULL,
    args         json        NOT NULL,
    metadata     json,
    result       json,
    error        text
) PARTITION BY LIST (done_slot);

-- The compact form: members of one claim batch that ended well with nothing to keep. The jobs themselves are read
-- from the attempt batch (lane_id, attempt_seq) and the ready rows of the same slot.
CREATE TABLE /*schema*/awa.receipt_completion_batches (
    lane_id      bigint      NOT NULL,
    attempt_seq  bigint      NOT NULL,
    completed_at timestamptz NOT NULL,
    ready_slot   smallint    NOT NULL,
    jobs         smallint    NOT NULL,
    receipts     int8multirange            -- NULL: all members
) PARTITION BY LIST (ready_slot);

-- Hides a compact completed job from terminal_jobs, without touching its batch.
CREATE TABLE /*schema*/awa.receipt_completion_tombstones (
    job_id     bigint      NOT NULL,
    run_lease  bigint      NOT NULL,
    deleted_at timestamptz NOT NULL,
    ready_slot smallint    NOT NULL
) PARTITION BY LIST (ready_slot);

-- ---------------------------------------------------------------------------------------------------------------
-- Claim ring: who holds what, and what was closed
-- ---------------------------------------------------------------------------------------------------------------

-- The compact claim: the members of one claim call on one lane and slot. job_ids is NULL when it equals the attempt
-- batch (lane_id, attempt_seq) of ready_slot, which an open claim keeps from being reclaimed.
CREATE TABLE /*schema*/awa.lease_claim_batches (
    batch_id    bigint      NOT NULL,
    lane_id     bigint      NOT NULL,
    attempt_seq bigint      NOT NULL,
    claimed_at  timestamptz NOT NULL,
    instance_id bigint      NOT NULL,
    nonce       bigint      NOT NULL,
    claim_slot  smallint    NOT NULL,
    ready_slot  smallint    NOT NULL,
    members     smallint    NOT NULL CHECK (members BETWEEN 1 AND 1023),
    deadline_at timestamptz,
    job_ids     bigint[]
) PARTITION BY LIST (claim_slot);

-- Closures of compact claims: of a batch of one its only receipt, of a larger one any part of it. The unique index and
-- the exclusion constraint of each child make a second closure impossible. (A batch of one could be closed as a range as
-- well, but an entry of a GiST index costs three times the log and five times the time of one of a B-tree.)
CREATE TABLE /*schema*/awa.lease_claim_closure_batches (
    claim_slot smallint NOT NULL,
    outcome    smallint NOT NULL,         -- a number of attempt_outcomes
    receipt    bigint,
    receipts   int8multirange,
    CHECK ((receipt IS NULL) <> (receipts IS NULL))
) PARTITION BY LIST (claim_slot);

-- Row-local claims, for attempts that need their own row: a deadline of their own, materialization.
CREATE TABLE /*schema*/awa.lease_claims (
    receipt_id  bigint      NOT NULL,
    job_id      bigint      NOT NULL,
    run_lease   bigint      NOT NULL,
    lane_id     bigint      NOT NULL,
    attempt_seq bigint      NOT NULL,
    claimed_at  timestamptz NOT NULL,
    instance_id bigint      NOT NULL,
    nonce       bigint      NOT NULL,
    claim_slot  smallint    NOT NULL,
    ready_slot  smallint    NOT NULL,
    deadline_at timestamptz,
    closed_at   timestamptz
) PARTITION BY LIST (claim_slot);

-- Closures of row-local claims; the primary key of each child makes a second closure impossible.
CREATE TABLE /*schema*/awa.lease_claim_closures (
    receipt_id bigint      NOT NULL,
    job_id     bigint      NOT NULL,
    run_lease  bigint      NOT NULL,
    closed_at  timestamptz NOT NULL,
    claim_slot smallint    NOT NULL,
    ready_slot smallint    NOT NULL,
    outcome    smallint    NOT NULL
) PARTITION BY LIST (claim_slot);

-- The numbers in the outcome columns.
CREATE TABLE /*schema*/awa.attempt_outcomes (
    outcome smallint NOT NULL PRIMARY KEY,
    name    text     NOT NULL UNIQUE
);
INSERT INTO /*schema*/awa.attempt_outcomes (outcome, name) VALUES
    (1, 'completed'), (2, 'retried'), (3, 'snoozed'), (4, 'failed'), (5, 'cancelled'), (6, 'released'),
    (7, 'stale_rescued'), (8, 'deadline_expired');

-- ---------------------------------------------------------------------------------------------------------------
-- Plain tables, vacuumed like any other
-- ---------------------------------------------------------------------------------------------------------------

-- Jobs that wait for their time; promotion deletes here and appends to ready_entries in one transaction.
CREATE TABLE /*schema*/awa.deferred_jobs (
    job_id       bigint      NOT NULL PRIMARY KEY,
    run_lease    bigint      NOT NULL,
    run_at       timestamptz NOT NULL,
    created_at   timestamptz NOT NULL,
    priority     smallint    NOT NULL,
    shard        smallint    NOT NULL,
    attempt      smallint    NOT NULL,
    max_attempts smallint    NOT NULL,
    reason       text        NOT NULL CHECK (reason IN ('scheduled', 'retry', 'snooze', 'release')),
    queue        text        NOT NULL,
    kind         text        NOT NULL,
    args         json        NOT NULL,
    metadata     json,
    last_error   text
);
CREATE INDEX deferred_jobs_due ON /*schema*/awa.deferred_jobs (run_at, job_id);

-- Jobs that failed for good, held for an operator.
CREATE TABLE /*schema*/awa.dlq_entries (
    job_id       bigint      NOT NULL PRIMARY KEY,
    run_lease    bigint      NOT NULL,
    created_at   timestamptz NOT NULL,
    failed_at    timestamptz NOT NULL,
    priority     smallint    NOT NULL,
    shard        smallint    NOT NULL,
    attempt      smallint    NOT NULL,
    max_attempts smallint    NOT NULL,
    outcome      smallint    NOT NULL,
    queue        text        NOT NULL,
    kind         text        NOT NULL,
    args         json        NOT NULL,
    metadata     json,
    error        text        NOT NULL
);

-- One row per worker process; an attempt whose instance has none, or an old beat, is stale.
CREATE TABLE /*schema*/awa.runtime_instances (
    instance_id   bigint      NOT NULL PRIMARY KEY,
    started_at    timestamptz NOT NULL,
    beating_since timestamptz NOT NULL,
    last_beat     timestamptz NOT NULL,
    retired_at    timestamptz             -- it said goodbye: what it claimed before may be rescued at once
) WITH (fillfactor = 50);

-- When each task of maintenance last had its turn, in microseconds since the epoch. Sequences, because a turn
-- overwrites them in place: a table would collect a dead row per turn while a snapshot is held.
CREATE SEQUENCE /*schema*/awa.tick_promote AS bigint MINVALUE 0 START 0;
CREATE SEQUENCE /*schema*/awa.tick_rescue AS bigint MINVALUE 0 START 0;
CREATE SEQUENCE /*schema*/awa.tick_rings AS bigint MINVALUE 0 START 0;
CREATE SEQUENCE /*schema*/awa.tick_tidy AS bigint MINVALUE 0 START 0;

-- ---------------------------------------------------------------------------------------------------------------
-- Children. Autovacuum is off: they are append-only and truncated. Their rows are found by index only.
-- ---------------------------------------------------------------------------------------------------------------

-- each queue slot:
CREATE TABLE /*schema*/awa.ready_entries_0/*slot*/ PARTITION OF /*schema*/awa.ready_entries FOR VALUES IN (0/*slot*/)
    WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE UNIQUE INDEX ready_entries_order_0/*slot*/ ON /*schema*/awa.ready_entries_0/*slot*/ (lane_id, xid, job_id);
CREATE INDEX ready_entries_first_0/*slot*/ ON /*schema*/awa.ready_entries_0/*slot*/ USING brin (job_id)
    WHERE run_lease IS NULL;
-- A new index has its first range summarised, and would then write to the log with each row.
SELECT brin_desummarize_range('/*schema*/awa.ready_entries_first_0/*slot*/', 0);
CREATE INDEX ready_entries_again_0/*slot*/ ON /*schema*/awa.ready_entries_0/*slot*/ (job_id)
    WHERE run_lease IS NOT NULL;
CREATE TABLE /*schema*/awa.ready_claim_attempt_batches_0/*slot*/
    PARTITION OF /*schema*/awa.ready_claim_attempt_batches FOR VALUES IN (0/*slot*/)
    WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE UNIQUE INDEX ready_claim_attempt_batches_chain_0/*slot*/
    ON /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ (lane_id, seq);
CREATE TABLE /*schema*/awa.ready_tombstones_0/*slot*/
    PARTITION OF /*schema*/awa.ready_tombstones FOR VALUES IN (0/*slot*/)
    WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE UNIQUE INDEX ready_tombstones_once_0/*slot*/
    ON /*schema*/awa.ready_tombstones_0/*slot*/ (lane_id, job_id, run_lease);
CREATE TABLE /*schema*/awa.done_entries_0/*slot*/ PARTITION OF /*schema*/awa.done_entries FOR VALUES IN (0/*slot*/)
    WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE UNIQUE INDEX done_entries_once_0/*slot*/ ON /*schema*/awa.done_entries_0/*slot*/ (job_id, run_lease);
CREATE TABLE /*schema*/awa.receipt_completion_batches_0/*slot*/
    PARTITION OF /*schema*/awa.receipt_completion_batches FOR VALUES IN (0/*slot*/)
    WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE TABLE /*schema*/awa.receipt_completion_tombstones_0/*slot*/
    PARTITION OF /*schema*/awa.receipt_completion_tombstones FOR VALUES IN (0/*slot*/)
    WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE UNIQUE INDEX receipt_completion_tombstones_once_0/*slot*/
    ON /*schema*/awa.receipt_completion_tombstones_0/*slot*/ (job_id, run_lease);
INSERT INTO /*schema*/awa.queue_ring_slots (generation, slot, state) VALUES (0, 0/*slot*/, 'free');
-- end each

-- each claim slot:
CREATE TABLE /*schema*/awa.lease_claim_batches_0/*slot*/
    PARTITION OF /*schema*/awa.lease_claim_batches FOR VALUES IN (0/*slot*/)
    WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE UNIQUE INDEX lease_claim_batches_batch_0/*slot*/ ON /*schema*/awa.lease_claim_batches_0/*slot*/ (batch_id);
CREATE INDEX lease_claim_batches_deadline_0/*slot*/ ON /*schema*/awa.lease_claim_batches_0/*slot*/ (deadline_at, batch_id)
    WHERE deadline_at IS NOT NULL;
CREATE TABLE /*schema*/awa.lease_claim_closure_batches_0/*slot*/
    PARTITION OF /*schema*/awa.lease_claim_closure_batches FOR VALUES IN (0/*slot*/)
    WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE /*schema*/awa.lease_claim_closure_batches_0/*slot*/
    ADD CONSTRAINT lease_claim_closure_batches_once_0/*slot*/ EXCLUDE USING gist (receipts WITH &&)
    WHERE (receipts IS NOT NULL);
CREATE UNIQUE INDEX lease_claim_closure_batches_single_0/*slot*/
    ON /*schema*/awa.lease_claim_closure_batches_0/*slot*/ (receipt) WHERE receipt IS NOT NULL;
CREATE TABLE /*schema*/awa.lease_claims_0/*slot*/ PARTITION OF /*schema*/awa.lease_claims FOR VALUES IN (0/*slot*/)
    WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE UNIQUE INDEX lease_claims_receipt_0/*slot*/ ON /*schema*/awa.lease_claims_0/*slot*/ (receipt_id);
CREATE INDEX lease_claims_deadline_0/*slot*/ ON /*schema*/awa.lease_claims_0/*slot*/ (deadline_at, job_id, run_lease)
    WHERE deadline_at IS NOT NULL;
CREATE TABLE /*schema*/awa.lease_claim_closures_0/*slot*/
    PARTITION OF /*schema*/awa.lease_claim_closures FOR VALUES IN (0/*slot*/)
    WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE UNIQUE INDEX lease_claim_closures_once_0/*slot*/ ON /*schema*/awa.lease_claim_closures_0/*slot*/ (receipt_id);
INSERT INTO /*schema*/awa.claim_ring_slots (generation, slot, state) VALUES (0, 0/*slot*/, 'free');
-- end each

-- The first opening of both rings: generation 1, slot 0.
UPDATE /*schema*/awa.queue_ring_slots SET generation = 1, state = 'open', opened_at = clock_timestamp() WHERE slot = 0;
UPDATE /*schema*/awa.claim_ring_slots SET generation = 1, state = 'open', opened_at = clock_timestamp() WHERE slot = 0;
INSERT INTO /*schema*/awa.queue_ring_rotations (generation, opened_at, slot) VALUES (1, clock_timestamp(), 0);
INSERT INTO /*schema*/awa.claim_ring_rotations (generation, opened_at, slot) VALUES (1, clock_timestamp(), 0);
SELECT setval('/*schema*/awa.queue_ring_pointer', 64);
SELECT setval('/*schema*/awa.claim_ring_pointer', 64);
