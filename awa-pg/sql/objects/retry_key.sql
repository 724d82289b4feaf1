-- Purpose: the advisory lock of a failed job, different for each schema of one database. Whoever takes the job out of history
--   holds it to the end of its transaction, because nobody locks a row of a ring.
-- Parameters: id.
-- Returns: the key.
-- Locks: none.
-- Caller: take_key_again, hide_finished.
CREATE OR REPLACE FUNCTION /*schema*/awa.retry_key(p_job bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $awa$
    SELECT p_job # hashtextextended('awa retry of ' || '/*schema*/awa', 0)
$awa$;
