-- Purpose: the number of the protocol by which programs write ready rows by themselves. A version that has them written otherwise raises
--   it, and programs of before, which may still run, leave their rows to the functions from then on: what they have prepared is
--   planned anew, because this stands in it.
-- Parameters: none.
-- Returns: 1.
-- Locks: none.
-- Caller: Producer::enqueue.
CREATE OR REPLACE FUNCTION /*schema*/awa.ready_protocol() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $awa$
    SELECT 1
$awa$;
