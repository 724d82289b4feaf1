-- Purpose: the settings of the server by which a measurement can be judged and repeated.
-- Parameters: names.
-- Returns: per setting that the server knows its name and its value with its unit, by name.
-- Locks: none.
-- Caller: settings.
SELECT n.name, pg_catalog.current_setting(n.name, true) AS value
FROM pg_catalog.unnest($1::text[]) AS n (name)
WHERE pg_catalog.current_setting(n.name, true) IS NOT NULL
ORDER BY n.name
