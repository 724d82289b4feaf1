-- Purpose: takes the keys of new jobs, each unless another job holds it.
-- Parameters: parallel arrays, one element per job: key (NULL: none), id, states in which it will hold the key.
-- Returns: per job, in input order, the id of the job that holds its key now; its own when it has none.
-- Locks: ROW EXCLUSIVE on unique_claims. Waits only for an open transaction that has inserted the same key, or is
--   deleting it; never locks a row that exists. Keys are taken in ascending order, so that two calls cannot wait for
--   each other. Under REPEATABLE READ a key that was committed after the snapshot is a serialization failure: the caller
--   could not be told which job holds it.
-- Caller: enqueue_unique_jobs, replace_waiting_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.take_unique_keys(p_keys bytea[], p_jobs bigint[], p_states smallint[])
RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_holders  bigint[];
    v_is_known boolean;
BEGIN
    FOR v_turn IN 1..8 LOOP
        INSERT INTO /*schema*/awa.unique_claims (key, job_id, states)
        SELECT DISTINCT ON (w.key) w.key, w.job, w.states
        FROM unnest(p_keys, p_jobs, p_states) AS w (key, job, states)
        WHERE w.key IS NOT NULL
        ORDER BY w.key, w.job
        ON CONFLICT (key) DO NOTHING;
        -- A new statement, which sees whose transaction was waited for. An old snapshot may see a holder that has given
        -- the key back meanwhile beside the row just inserted, whose id is larger.
        SELECT array_agg(h.holder ORDER BY h.o), bool_and(h.holder IS NOT NULL) INTO v_holders, v_is_known
        FROM (SELECT w.o, CASE WHEN w.key IS NULL THEN w.job
                               ELSE (SELECT max(c.job_id) FROM /*schema*/awa.unique_claims AS c WHERE c.key = w.key)
                          END AS holder
              FROM unnest(p_keys, p_jobs) WITH ORDINALITY AS w (key, job, o)) AS h;
        IF v_is_known THEN
            RETURN v_holders;
        END IF;
        -- A holder gave its key back between the two statements: it is free, or somebody else's.
    END LOOP;
    RAISE EXCEPTION 'a unique key changed hands 8 times while it was asked for' USING ERRCODE = '40001',
        HINT = 'enqueue again';
END
$awa$;
