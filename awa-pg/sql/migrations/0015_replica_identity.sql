-- additive
--
-- Purpose: names for rows that are changed or deleted one by one. PostgreSQL refuses to change a published table without them,
--   so that a publication of all tables of the database would stop the rings. Nothing more is written to the log unless
--   wal_level is logical.

ALTER TABLE /*schema*/awa.queue_ring_slots REPLICA IDENTITY FULL;
ALTER TABLE /*schema*/awa.claim_ring_slots REPLICA IDENTITY FULL;
ALTER TABLE /*schema*/awa.lease_ring_slots REPLICA IDENTITY FULL;
ALTER TABLE /*schema*/awa.lane_hints REPLICA IDENTITY FULL;
ALTER TABLE /*schema*/awa.unique_releases REPLICA IDENTITY FULL;
ALTER TABLE /*schema*/awa.cancel_requests REPLICA IDENTITY FULL;
ALTER TABLE /*schema*/awa.queue_counters REPLICA IDENTITY FULL;
-- each lease slot:
ALTER TABLE /*schema*/awa.leases_0/*slot*/ REPLICA IDENTITY USING INDEX leases_receipt_0/*slot*/;
-- end each
