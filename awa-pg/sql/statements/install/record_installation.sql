-- Purpose: says that the installation is complete. The cluster is that of the functions: that the schema was moved must not
--   be hidden by an upgrade.
-- Parameters: version, fingerprint, sizes of the queue, claim and lease ring, version of the program.
-- Returns: nothing.
-- Locks: the one row.
-- Caller: prepare_schema, grow_ring.
INSERT INTO /*schema*/awa.installation AS i (
    version, fingerprint, queue_slots, claim_slots, lease_slots, program, prepared_at, cluster)
VALUES ($1::integer, $2::text, $3::smallint, $4::smallint, $5::smallint, $6::text, pg_catalog.clock_timestamp(),
    /*schema*/awa.home_cluster())
ON CONFLICT (is_only) DO UPDATE SET version = excluded.version, fingerprint = excluded.fingerprint,
    queue_slots = excluded.queue_slots, claim_slots = excluded.claim_slots, lease_slots = excluded.lease_slots,
    program = excluded.program, prepared_at = excluded.prepared_at,
    cluster = CASE WHEN i.cluster IS NULL THEN excluded.cluster ELSE i.cluster END
