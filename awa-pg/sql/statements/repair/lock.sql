-- Purpose: keeps everybody else out of the rings.
-- Parameters: none.
-- Returns: nothing.
-- Locks: ACCESS EXCLUSIVE on the control tables, on what is outside the rings, and on all children of the queue ring, in the
--   hot path's order; waited for no longer than lock_timeout.
-- Caller: repair.
LOCK TABLE /*schema*/awa.queue_ring_slots, /*schema*/awa.claim_ring_slots, /*schema*/awa.lease_ring_slots,
    /*schema*/awa.carried_entries, /*schema*/awa.leases, /*schema*/awa.ready_entries,
    /*schema*/awa.ready_claim_attempt_batches, /*schema*/awa.ready_tombstones, /*schema*/awa.done_entries,
    /*schema*/awa.receipt_completion_batches, /*schema*/awa.receipt_completion_tombstones
    IN ACCESS EXCLUSIVE MODE
