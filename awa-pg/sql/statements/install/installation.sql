-- Purpose: what is installed.
-- Parameters: none.
-- Returns: version of the newest migration, fingerprint of all objects, sizes of the queue, claim and lease ring, version
--   of the program that installed it; no row while an installation is unfinished.
-- Locks: none that matter.
-- Caller: prepare_schema, check_ready.
SELECT i.version, i.fingerprint, i.queue_slots, i.claim_slots, i.lease_slots, i.program
FROM /*schema*/awa.installation AS i
