-- Purpose: whether the schema and the installation's own tables exist.
-- Parameters: none.
-- Returns: schema exists, bookkeeping exists, whether unfinished rows of a pre-ring schema are in the way.
-- Locks: none.
-- Caller: prepare_schema, check_ready.
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace AS n WHERE n.nspname = '/*schema*/awa'),
       EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
               WHERE n.nspname = '/*schema*/awa' AND c.relname = 'installation'),
       EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
               WHERE n.nspname = '/*schema*/awa' AND c.relname = 'open_receipt_claims')
