-- Purpose: whether the schema and the installation's own tables exist.
-- Parameters: none.
-- Returns: schema exists, bookkeeping exists, whether receipt tables of before the rings are there,
--   the encoding of the database.
-- Locks: none.
-- Caller: prepare_schema, check_ready.
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace AS n WHERE n.nspname = '/*schema*/awa'),
       EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
               WHERE n.nspname = '/*schema*/awa' AND c.relname = 'installation'),
       EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
               WHERE n.nspname = '/*schema*/awa' AND c.relkind = 'r'
                 AND c.relname IN ('open_receipt_claims', 'lease_claims', 'lease_claim_closures')),
       current_setting('server_encoding')
