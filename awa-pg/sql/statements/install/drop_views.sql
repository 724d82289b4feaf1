-- Purpose: how views are dropped. They hold nothing, and are made right afterwards in the same transaction.
-- Parameters: names that views of this or an older version may have.
-- Returns: the script, when there are any. All are dropped by one statement, whatever depends on what among them.
-- Locks: none; the script takes ACCESS EXCLUSIVE on the views.
-- Caller: prepare_schema, when a view changed in a way that may not be replaced.
SELECT 'DROP VIEW ' || pg_catalog.string_agg(pg_catalog.format('%I.%I', n.nspname, c.relname), ', ')
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = '/*schema*/awa' AND c.relkind = 'v' AND c.relname = ANY ($1::text[])
HAVING pg_catalog.count(*) > 0
