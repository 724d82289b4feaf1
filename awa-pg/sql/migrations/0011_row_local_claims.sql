-- additive
--
-- Purpose: what row-local claims need beside their tables.

ALTER TABLE /*schema*/awa.claim_ring_slots
    -- The deadline sweep over row-local claims, while its cursor is held, has come to this.
    ADD COLUMN deadline_resume_at timestamptz, ADD COLUMN deadline_resume_job bigint, ADD COLUMN deadline_resume_lease bigint,
    -- The stale sweep over row-local claims stands behind this (claimed_at, job_id, run_lease), and has come to resume.
    ADD COLUMN row_stale_cursor_at timestamptz, ADD COLUMN row_stale_cursor_job bigint, ADD COLUMN row_stale_cursor_lease bigint,
    ADD COLUMN row_stale_resume_at timestamptz, ADD COLUMN row_stale_resume_job bigint, ADD COLUMN row_stale_resume_lease bigint,
    -- The claims of this generation have batch ids above this.
    ADD COLUMN after_batch bigint NOT NULL DEFAULT 0;

-- each claim slot:
CREATE INDEX lease_claims_claimed_0/*slot*/ ON /*schema*/awa.lease_claims_0/*slot*/ (claimed_at, job_id, run_lease);
-- end each

-- It now takes the shape of the claim; a second function of this name would make every call of it ambiguous.
DROP FUNCTION IF EXISTS /*schema*/awa.claim_jobs(text, bigint, bigint, integer, bigint, bigint, bigint, timestamptz);

-- It now takes the state that the job was seen in.
DROP FUNCTION IF EXISTS /*schema*/awa.take_held_job(bigint);
