-- Purpose: says that the installation is complete.
-- Parameters: version, fingerprint, sizes of the queue, claim and lease ring, version of the program.
-- Returns: nothing.
-- Locks: the one row.
-- Caller: prepare_schema.
INSERT INTO /*schema*/awa.installation (
    version, fingerprint, queue_slots, claim_slots, lease_slots, program, prepared_at)
VALUES ($1::integer, $2::text, $3::smallint, $4::smallint, $5::smallint, $6::text, clock_timestamp())
ON CONFLICT (is_only) DO UPDATE SET version = excluded.version, fingerprint = excluded.fingerprint,
    queue_slots = excluded.queue_slots, claim_slots = excluded.claim_slots, lease_slots = excluded.lease_slots,
    program = excluded.program, prepared_at = excluded.prepared_at
