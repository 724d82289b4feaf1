-- Purpose: drops all views, because a view whose columns changed cannot be replaced. They hold nothing; those of this
--   version are made right afterwards, in the same transaction.
-- Parameters: none.
-- Returns: nothing.
-- Locks: ACCESS EXCLUSIVE on the views.
-- Caller: prepare_schema, when the text of a view changed.
DROP VIEW IF EXISTS /*schema*/awa.waiting_rows, /*schema*/awa.jobs, /*schema*/awa.terminal_jobs,
    /*schema*/awa.emitted_attempts, /*schema*/awa.open_claims, /*schema*/awa.open_compact_claims,
    /*schema*/awa.open_row_claims, /*schema*/awa.lane_frontiers, /*schema*/awa.closed_receipts
    -- each claim slot:
    , /*schema*/awa.open_claims_0/*slot*/
    -- end each
