-- additive
--
-- Purpose: the ids of a batch are written once and read seldom, so the quicker compression is the better one.

DO $awa$
BEGIN
    -- A server can be built without it; then its default stays.
    IF EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)) THEN
        ALTER TABLE /*schema*/awa.ready_claim_attempt_batches ALTER COLUMN job_ids SET COMPRESSION lz4;
        -- each queue slot:
        ALTER TABLE /*schema*/awa.ready_claim_attempt_batches_0/*slot*/ ALTER COLUMN job_ids SET COMPRESSION lz4;
        -- end each
    END IF;
END
$awa$;
