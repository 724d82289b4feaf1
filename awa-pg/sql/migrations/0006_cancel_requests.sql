-- additive
--
-- Purpose: cancels that were asked for in transactions of applications, which must hold neither a lane nor an attempt.

-- Empty in the common case: whoever ends an attempt looks at its size first. No key: two transactions that cancel one job need
-- not wait for each other here.
CREATE TABLE /*schema*/awa.cancel_requests (
    job_id       bigint      NOT NULL,
    requested_at timestamptz NOT NULL,
    reason       text        NOT NULL
);
CREATE INDEX cancel_requests_job ON /*schema*/awa.cancel_requests (job_id);
