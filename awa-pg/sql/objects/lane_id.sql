-- Purpose: the identity of a lane, computed so that the first use of a queue needs no row and no lock.
-- Parameters: queue; priority 1 to 4; shard from 0.
-- Returns: the first 64 bits of a SHA-256 over the three.
-- Locks: none.
-- Caller: enqueue_jobs, open_queue, promote_due, retry_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.lane_id(p_queue text, p_priority smallint, p_shard smallint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $awa$
BEGIN
    -- As a SQL function it would be parsed anew in every transaction: what converts a text is not immutable, which keeps
    -- it from being inlined.
    RETURN ('x' || substr(encode(sha256(convert_to(
        p_priority::text || ':' || p_shard::text || ':' || p_queue, 'UTF8')), 'hex'), 1, 16))::bit(64)::bigint;
END
$awa$;
