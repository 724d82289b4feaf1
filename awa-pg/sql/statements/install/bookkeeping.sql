-- Purpose: the tables by which an installation knows itself.
-- Parameters: none.
-- Returns: nothing.
-- Locks: none that matter.
-- Caller: prepare_schema, when has_schema says that they are missing.
CREATE TABLE /*schema*/awa.migrations (
    version    integer     NOT NULL PRIMARY KEY,
    title      text        NOT NULL,
    hash       text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Functions and views as installed, by the hash of their text.
CREATE TABLE /*schema*/awa.objects (
    name text NOT NULL PRIMARY KEY,
    hash text NOT NULL
);
-- One row, written last: what a program must fit.
CREATE TABLE /*schema*/awa.installation (
    is_only     boolean     NOT NULL PRIMARY KEY DEFAULT true CHECK (is_only),
    version     integer     NOT NULL,
    fingerprint text        NOT NULL,
    queue_slots smallint    NOT NULL,
    claim_slots smallint    NOT NULL,
    lease_slots smallint    NOT NULL,
    program     text        NOT NULL,
    prepared_at timestamptz NOT NULL
)
