-- Purpose: takes the keys of new jobs, those that ask for it also from jobs that wait.
-- Parameters: parallel arrays, one element per job: key (NULL: none), id, states in which it will hold the key, whether it
--   replaces a job that waits; the present.
-- Returns: per job, in input order, the id of the job that holds its key now; and the job that it has replaced, or NULL.
-- Locks: as take_unique_keys and replace_waiting_job. One key after the other, each settled before the next, so that two
--   calls cannot wait for each other.
-- Caller: enqueue_unique_jobs.
CREATE OR REPLACE FUNCTION /*schema*/awa.replace_waiting_jobs(
    p_keys bytea[], p_jobs bigint[], p_states smallint[], p_replaces boolean[], p_now timestamptz,
    OUT holders bigint[], OUT replaced bigint[])
LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_want    record;
    v_holder  bigint;
    v_done    text;
    v_keys    bytea[];
    v_holders bigint[];
    v_olds    bigint[];
    v_news    bigint[];
BEGIN
    FOR v_want IN
        SELECT w.key, min(w.job) AS first, (array_agg(w.states ORDER BY w.job))[1] AS first_states,
               min(w.job) FILTER (WHERE w.replaces) AS newer,
               (array_agg(w.states ORDER BY w.job) FILTER (WHERE w.replaces))[1] AS newer_states
        FROM unnest(p_keys, p_jobs, p_states, p_replaces) AS w (key, job, states, replaces)
        WHERE w.key IS NOT NULL GROUP BY w.key ORDER BY w.key
    LOOP
        FOR v_turn IN 1..8 LOOP
            SELECT t[1] INTO v_holder FROM /*schema*/awa.take_unique_keys(
                ARRAY[v_want.key], ARRAY[v_want.first], ARRAY[v_want.first_states]) AS t;
            EXIT WHEN v_holder = v_want.first OR v_want.newer IS NULL;
            v_done := /*schema*/awa.replace_waiting_job(v_want.key, v_holder, v_want.newer, v_want.newer_states, p_now);
            IF v_done = 'replaced' THEN
                v_olds := v_olds || v_holder;
                v_news := v_news || v_want.newer;
                v_holder := v_want.newer;
            END IF;
            EXIT WHEN v_done <> 'gone';
            IF v_turn = 8 THEN
                RAISE EXCEPTION 'a unique key changed hands 8 times while its job was to be replaced'
                    USING ERRCODE = '40001', HINT = 'enqueue again';
            END IF;
        END LOOP;
        v_keys := v_keys || v_want.key;
        v_holders := v_holders || v_holder;
    END LOOP;
    SELECT array_agg(CASE WHEN w.key IS NULL THEN w.job ELSE h.holder END ORDER BY w.o), array_agg(r.old ORDER BY w.o)
    INTO holders, replaced
    FROM unnest(p_keys, p_jobs) WITH ORDINALITY AS w (key, job, o)
    LEFT JOIN unnest(v_keys, v_holders) AS h (key, holder) ON h.key = w.key
    LEFT JOIN unnest(v_olds, v_news) AS r (old, new) ON r.new = w.job;
END
$awa$;
