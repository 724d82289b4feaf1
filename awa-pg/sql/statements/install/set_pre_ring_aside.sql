-- Purpose: makes room for the rings in a schema of before them: drops open_receipt_claims when it is empty, and gives the
--   unpartitioned lease_claims and lease_claim_closures other names until their rows are rewritten. Refuses while
--   open_receipt_claims has rows: they are attempts that run, and this version cannot end them.
-- Parameters: none.
-- Returns: nothing.
-- Locks: ACCESS EXCLUSIVE on the tables of before the rings.
-- Caller: prepare_schema, when has_schema says that there are such tables.
DO $awa$
DECLARE
    v_rows  bigint;
    v_table text;
BEGIN
    IF to_regclass('/*schema*/awa.open_receipt_claims') IS NOT NULL THEN
        LOCK TABLE /*schema*/awa.open_receipt_claims IN ACCESS EXCLUSIVE MODE;
        SELECT count(*) INTO v_rows FROM /*schema*/awa.open_receipt_claims;
        IF v_rows > 0 THEN
            RAISE EXCEPTION 'open_receipt_claims still holds % rows, which are attempts of the older version', v_rows
                USING ERRCODE = 'AW001', CONSTRAINT = 'AW001',
                    HINT = 'stop enqueueing, let the workers of the older version finish until the '
                    'table is empty, stop them, then run `awa migrate` again; nothing was changed';
        END IF;
        DROP TABLE /*schema*/awa.open_receipt_claims;
    END IF;
    FOR v_table IN
        SELECT c.relname FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = '/*schema*/awa' AND c.relkind = 'r' AND c.relname IN ('lease_claims', 'lease_claim_closures')
        ORDER BY c.relname
    LOOP
        EXECUTE format('ALTER TABLE %I.%I RENAME TO %I', '/*schema*/awa', v_table, 'pre_ring_' || v_table);
    END LOOP;
    -- One of the two alone is an empty other one.
    IF to_regclass('/*schema*/awa.pre_ring_lease_claims') IS NULL
       AND to_regclass('/*schema*/awa.pre_ring_lease_claim_closures') IS NOT NULL THEN
        CREATE TABLE /*schema*/awa.pre_ring_lease_claims (job_id bigint, run_lease bigint, claimed_at timestamptz);
    ELSIF to_regclass('/*schema*/awa.pre_ring_lease_claims') IS NOT NULL
       AND to_regclass('/*schema*/awa.pre_ring_lease_claim_closures') IS NULL THEN
        CREATE TABLE /*schema*/awa.pre_ring_lease_claim_closures (
            job_id bigint, run_lease bigint, outcome text, closed_at timestamptz);
    END IF;
END
$awa$
