-- Keeps what the rings forget: who was handed out when, what closed it, and how each job ended. Installed beside a schema
-- of Awa by the chaos runs; written in the transactions of Awa itself, so that it tells exactly what was committed.
CREATE SCHEMA audit;
CREATE TABLE audit.claims (receipt bigint NOT NULL, job bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE audit.closures (
    receipt bigint NOT NULL, outcome smallint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE audit.leases (
    receipt bigint NOT NULL, job bigint NOT NULL, change smallint NOT NULL, claim_slot smallint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE audit.ends (job bigint NOT NULL, state text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE audit.delays (job bigint NOT NULL, run_at timestamptz NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE FUNCTION audit.on_attempt_batch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF NEW.batch_id IS NOT NULL THEN
        INSERT INTO audit.claims (receipt, job)
        SELECT (NEW.batch_id << 10) + m.index, m.job
        FROM pg_catalog.unnest(coalesce(NEW.job_ids, ARRAY[NEW.job_id])) WITH ORDINALITY AS m (job, index);
    END IF;
    RETURN NULL;
END
$$;
CREATE FUNCTION audit.on_closure_batch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO audit.closures (receipt, outcome)
    SELECT r.receipt, NEW.outcome
    FROM pg_catalog.unnest(coalesce(NEW.receipts, int8multirange(int8range(NEW.receipt, NEW.receipt + 1)))) AS run (run)
    CROSS JOIN LATERAL pg_catalog.generate_series(lower(run.run), upper(run.run) - 1) AS r (receipt);
    RETURN NULL;
END
$$;
CREATE FUNCTION audit.on_row_closure() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO audit.closures (receipt, outcome) VALUES (NEW.receipt_id, NEW.outcome);
    RETURN NULL;
END
$$;
CREATE FUNCTION audit.on_lease() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO audit.leases (receipt, job, change, claim_slot) VALUES (NEW.receipt_id, NEW.job_id, 1, NEW.claim_slot);
    ELSE
        INSERT INTO audit.leases (receipt, job, change, claim_slot) VALUES (OLD.receipt_id, OLD.job_id, -1, OLD.claim_slot);
    END IF;
    RETURN NULL;
END
$$;
CREATE FUNCTION audit.on_completion_batch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO audit.ends (job, state)
    SELECT m.job, 'completed'
    FROM awa.ready_claim_attempt_batches AS b
    CROSS JOIN LATERAL pg_catalog.unnest(coalesce(b.job_ids, ARRAY[b.job_id])) WITH ORDINALITY AS m (job, index)
    WHERE b.ready_slot = NEW.ready_slot AND b.lane_id = NEW.lane_id AND b.seq = NEW.attempt_seq
      AND (NEW.receipts IS NULL OR NEW.receipts @> (b.batch_id << 10) + m.index);
    RETURN NULL;
END
$$;
CREATE FUNCTION audit.on_done() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO audit.ends (job, state) VALUES (NEW.job_id, NEW.state);
    RETURN NULL;
END
$$;
CREATE FUNCTION audit.on_dead() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO audit.ends (job, state) VALUES (NEW.job_id, 'dead');
    RETURN NULL;
END
$$;
CREATE FUNCTION audit.on_delay() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO audit.delays (job, run_at) VALUES (NEW.job_id, NEW.run_at);
    RETURN NULL;
END
$$;

CREATE TRIGGER audit AFTER INSERT ON awa.ready_claim_attempt_batches FOR EACH ROW EXECUTE FUNCTION audit.on_attempt_batch();
CREATE TRIGGER audit AFTER INSERT ON awa.lease_claim_closure_batches FOR EACH ROW EXECUTE FUNCTION audit.on_closure_batch();
CREATE TRIGGER audit AFTER INSERT ON awa.lease_claim_closures FOR EACH ROW EXECUTE FUNCTION audit.on_row_closure();
CREATE TRIGGER audit AFTER INSERT OR DELETE ON awa.leases FOR EACH ROW EXECUTE FUNCTION audit.on_lease();
CREATE TRIGGER audit AFTER INSERT ON awa.receipt_completion_batches FOR EACH ROW EXECUTE FUNCTION audit.on_completion_batch();
CREATE TRIGGER audit AFTER INSERT ON awa.done_entries FOR EACH ROW EXECUTE FUNCTION audit.on_done();
CREATE TRIGGER audit AFTER INSERT ON awa.dlq_entries FOR EACH ROW EXECUTE FUNCTION audit.on_dead();
CREATE TRIGGER audit AFTER INSERT ON awa.deferred_jobs FOR EACH ROW EXECUTE FUNCTION audit.on_delay();

-- When each attempt began and ended. An attempt ended by its closure, unless that made a lease of it (9); then when the
-- lease was deleted for the last time. Leases of the claim slot 255 are claims of their own.
CREATE VIEW audit.attempts AS
WITH claimed AS (
    SELECT c.receipt, c.job, c.at FROM audit.claims AS c
    UNION ALL
    SELECT l.receipt, min(l.job), min(l.at) FROM audit.leases AS l
    WHERE l.claim_slot = 255 AND l.change = 1 GROUP BY l.receipt
), closed AS (
    SELECT c.receipt, count(*) AS times, max(c.at) AS at, max(c.outcome) AS outcome
    FROM audit.closures AS c WHERE c.outcome <> 9 GROUP BY c.receipt
), leased AS (
    SELECT l.receipt, sum(l.change) AS open, max(l.at) AS at FROM audit.leases AS l GROUP BY l.receipt
)
SELECT c.receipt, c.job, c.at AS claimed_at, d.outcome,
       CASE WHEN d.at IS NOT NULL THEN d.at WHEN l.open = 0 THEN l.at END AS ended_at,
       coalesce(d.times, 0) + CASE WHEN l.open = 0 THEN 1 ELSE 0 END AS times_ended
FROM claimed AS c
LEFT JOIN closed AS d ON d.receipt = c.receipt
LEFT JOIN leased AS l ON l.receipt = c.receipt;
