-- Purpose: the shard of jobs with an ordering key: a jump consistent hash, so that with each shard that is added the key
--   either moves to that one or stays. Mirrors OrderingKey::shard of awa-core; a differential test ties the two.
-- Parameters: the number of the key, 1 to 2^31 - 2; the number of shards, from 1.
-- Returns: the shard, from 0.
-- Locks: none.
-- Caller: spread_lanes.
CREATE OR REPLACE FUNCTION /*schema*/awa.shard_of_key(p_number integer, p_shards smallint) RETURNS smallint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $awa$
DECLARE
    v_state bigint := p_number;
    v_shard bigint := 0;
    v_next  bigint;
BEGIN
    IF p_number NOT BETWEEN 1 AND 2147483646 THEN
        RAISE EXCEPTION '% is not the number of an ordering key', p_number USING ERRCODE = 'AW003', CONSTRAINT = 'AW003',
            HINT = 'it lies from 1 to 2147483646';
    END IF;
    LOOP
        v_state := v_state * 48271 % 2147483647;
        v_next := (v_shard + 1) * 2147483647 / v_state;
        IF v_next >= p_shards THEN
            RETURN v_shard;
        END IF;
        v_shard := v_next;
    END LOOP;
END
$awa$;
