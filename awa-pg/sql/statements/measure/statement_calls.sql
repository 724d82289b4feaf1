-- Purpose: how many statements clients have sent to this database, where pg_stat_statements counts them. The extension may
--   be in any schema, so it is asked by a text that is made here.
-- Parameters: none.
-- Returns: one row with the number; none where the extension is not there or its library is not loaded.
-- Locks: ACCESS SHARE on catalogs.
-- Caller: statement_calls.
SELECT
    coalesce(
        (
            pg_catalog.xpath(
                '//calls/text()',
                pg_catalog.query_to_xml(
                    pg_catalog.format(
                        'SELECT pg_catalog.sum(s.calls)::bigint AS calls FROM %I.pg_stat_statements(false) AS s '
                        'WHERE s.dbid = (SELECT d.oid FROM pg_catalog.pg_database AS d '
                        'WHERE d.datname = pg_catalog.current_database())',
                        n.nspname
                    ),
                    true,
                    false,
                    ''
                )
            )
        )[1]::text::bigint,
        0
    ) AS calls
FROM pg_catalog.pg_extension AS e
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace
WHERE e.extname OPERATOR(pg_catalog.=) 'pg_stat_statements'
    AND pg_catalog.current_setting('pg_stat_statements.track', true) IS NOT NULL
