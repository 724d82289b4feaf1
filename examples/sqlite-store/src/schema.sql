-- One row per job for its whole life, so that a job is in one state by construction (C2).
CREATE TABLE IF NOT EXISTS jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    state TEXT NOT NULL,
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    priority INTEGER NOT NULL,
    args TEXT NOT NULL,
    metadata TEXT,
    max_attempts INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    run_lease INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    -- The order within a lane (C6): what becomes ready joins the tail, what is handed back keeps its place.
    place INTEGER NOT NULL DEFAULT 0,
    ready_at INTEGER NOT NULL DEFAULT 0,
    run_at INTEGER,
    deferred TEXT,
    finalized_at INTEGER,
    result TEXT,
    error TEXT,
    -- The open attempt.
    receipt INTEGER UNIQUE,
    nonce INTEGER NOT NULL DEFAULT 0,
    instance INTEGER NOT NULL DEFAULT 0,
    claimed_at INTEGER NOT NULL DEFAULT 0,
    deadline_at INTEGER,
    -- The unique key, in which states it is held, and whether it is held now.
    unique_key BLOB,
    key_states INTEGER NOT NULL DEFAULT 0,
    holds_key INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX IF NOT EXISTS lanes ON jobs (queue, priority, place) WHERE state = 'ready';
CREATE INDEX IF NOT EXISTS due ON jobs (run_at) WHERE state = 'deferred';
-- The last word on uniqueness (C14).
CREATE UNIQUE INDEX IF NOT EXISTS holders ON jobs (unique_key) WHERE holds_key = 1;

-- How many jobs have ended whose rows are gone.
CREATE TABLE IF NOT EXISTS ended (
    queue TEXT NOT NULL, state TEXT NOT NULL, jobs INTEGER NOT NULL, PRIMARY KEY (queue, state)
) STRICT;
CREATE TRIGGER IF NOT EXISTS count_ended AFTER DELETE ON jobs WHEN OLD.state IN ('completed', 'failed', 'cancelled')
BEGIN
    INSERT INTO ended (queue, state, jobs) VALUES (OLD.queue, OLD.state, 1)
    ON CONFLICT (queue, state) DO UPDATE SET jobs = jobs + 1;
END;

CREATE TABLE IF NOT EXISTS queues (queue TEXT PRIMARY KEY, paused INTEGER NOT NULL DEFAULT 0) STRICT;
-- Equally urgent lanes take turns.
CREATE TABLE IF NOT EXISTS turns (
    queue TEXT NOT NULL, priority INTEGER NOT NULL, turn INTEGER NOT NULL, PRIMARY KEY (queue, priority)
) STRICT;
CREATE TABLE IF NOT EXISTS instances (
    instance INTEGER PRIMARY KEY,
    since INTEGER NOT NULL,
    last INTEGER NOT NULL,
    staleness INTEGER NOT NULL,
    retired INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS ticks (task TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS numbers (name TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT;
