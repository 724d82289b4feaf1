-- additive
--
-- Purpose: what lets nothing pin the rings: ready rows outside the queue ring, which claims read first, and attempts that
--   depend on no slot. Both are small, are deleted from, and are vacuumed like any other table.

-- Ready rows that were moved out of an old slot which only they kept, or handed back by a worker. A plain table and not
-- one more child of ready_entries: a child would have to be left out again by every reader of the ring (cursors,
-- tombstones, drained slots), and its partition constraint would cost the ring's children one more check.
CREATE TABLE /*schema*/awa.carried_entries (
    lane_id      bigint      NOT NULL,
    xid          xid8        NOT NULL,     -- of the ready row that it was: its place in the order of the lane
    job_id       bigint      NOT NULL,
    created_at   timestamptz NOT NULL,
    run_lease    bigint      NOT NULL,
    attempt      smallint    NOT NULL,
    max_attempts smallint    NOT NULL,
    kind         text        NOT NULL,
    args         json        NOT NULL,
    metadata     json,
    last_error   text,
    PRIMARY KEY (lane_id, xid, job_id)
);
CREATE UNIQUE INDEX carried_entries_job ON /*schema*/awa.carried_entries (job_id);

-- An open attempt that carries its job with it. It ends by being deleted. Its receipt is that of the claim that it was;
-- one that began as a lease has a receipt of the same sequence, and claim_slot 255.
CREATE TABLE /*schema*/awa.leases (
    receipt_id   bigint      NOT NULL,
    nonce        bigint      NOT NULL,
    job_id       bigint      NOT NULL,
    run_lease    bigint      NOT NULL,     -- of this attempt
    lane_id      bigint      NOT NULL,
    xid          xid8        NOT NULL,     -- as in carried_entries, for when it is handed back
    instance_id  bigint      NOT NULL,
    created_at   timestamptz NOT NULL,
    claimed_at   timestamptz NOT NULL,
    deadline_at  timestamptz,
    claim_slot   smallint    NOT NULL,
    lease_slot   smallint    NOT NULL,
    priority     smallint    NOT NULL,
    shard        smallint    NOT NULL,
    attempt      smallint    NOT NULL,     -- number of this attempt, from 1
    max_attempts smallint    NOT NULL,
    queue        text        NOT NULL,
    kind         text        NOT NULL,
    args         json        NOT NULL,
    metadata     json,
    last_error   text
) PARTITION BY LIST (lease_slot);

-- An attempt that has just ended, on its way to where its job goes; attempt and run_lease are those of the attempt.
CREATE TYPE /*schema*/awa.ended_attempt AS (
    tag          bigint,                   -- position in the arrays of the call
    receipt_id   bigint,
    job_id       bigint,
    run_lease    bigint,
    lane_id      bigint,
    xid          xid8,
    created_at   timestamptz,
    claimed_at   timestamptz,
    priority     smallint,
    shard        smallint,
    attempt      smallint,
    max_attempts smallint,
    queue        text,
    kind         text,
    args         json,
    metadata     json,
    last_error   text
);

INSERT INTO /*schema*/awa.attempt_outcomes (outcome, name) VALUES (9, 'materialized');

-- The control of the lease ring, as of the other two.
CREATE TABLE /*schema*/awa.lease_ring_slots (
    generation bigint      NOT NULL,
    opened_at  timestamptz,
    sealed_at  timestamptz,
    slot       smallint    NOT NULL,
    state      text        NOT NULL CHECK (state IN ('free', 'open', 'sealed'))
) WITH (fillfactor = 50);
CREATE TABLE /*schema*/awa.lease_ring_rotations (
    generation bigint      NOT NULL PRIMARY KEY,
    opened_at  timestamptz NOT NULL,
    slot       smallint    NOT NULL
);
CREATE SEQUENCE /*schema*/awa.lease_ring_pointer AS bigint;

-- each lease slot:
CREATE TABLE /*schema*/awa.leases_0/*slot*/ PARTITION OF /*schema*/awa.leases FOR VALUES IN (0/*slot*/);
CREATE UNIQUE INDEX leases_receipt_0/*slot*/ ON /*schema*/awa.leases_0/*slot*/ (receipt_id);
CREATE UNIQUE INDEX leases_job_0/*slot*/ ON /*schema*/awa.leases_0/*slot*/ (job_id);
INSERT INTO /*schema*/awa.lease_ring_slots (generation, slot, state) VALUES (0, 0/*slot*/, 'free');
-- end each

UPDATE /*schema*/awa.lease_ring_slots SET generation = 1, state = 'open', opened_at = clock_timestamp() WHERE slot = 0;
INSERT INTO /*schema*/awa.lease_ring_rotations (generation, opened_at, slot) VALUES (1, clock_timestamp(), 0);
SELECT setval('/*schema*/awa.lease_ring_pointer', 64);
