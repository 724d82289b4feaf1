-- additive
--
-- Purpose: what attempts note down, and attempts that wait for a callback.

-- What the attempts of a job have noted: their own signs of life, progress, and the latest token for a callback. A plain
-- table, vacuumed like any other; a job that notes nothing has no row. Written only by who holds the row of leases of the
-- running attempt locked, so that a stale writer changes nothing.
CREATE TABLE /*schema*/awa.attempt_state (
    job_id         bigint      NOT NULL PRIMARY KEY,
    run_lease      bigint      NOT NULL,   -- of the attempt that wrote last
    heartbeat_at   timestamptz NOT NULL,   -- when it did
    checked_at     timestamptz,            -- when tidy last looked whether the job is still there
    callback_lease bigint,                 -- of the attempt that the token belongs to
    called_at      timestamptz,            -- when the callback came
    token          uuid,
    progress       json,
    payload        json                    -- what came with the callback
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX attempt_state_token ON /*schema*/awa.attempt_state (token);

-- Parked: no worker holds the attempt, which its nonce sees to, and when this is over it has failed.
ALTER TABLE /*schema*/awa.leases ADD COLUMN waiting_until timestamptz;

INSERT INTO /*schema*/awa.attempt_outcomes (outcome, name) VALUES (10, 'resumed'), (11, 'callback_timed_out');
