-- Purpose: makes the jobs of attempts ready whose callback came, before all others of their lanes and uncharged.
-- Parameters: parallel arrays, one element per lease: claim slot, nonce, receipt; the present.
-- Returns: nothing.
-- Locks: as end_attempts.
-- Caller: park_attempts, resume_attempts.
CREATE OR REPLACE FUNCTION /*schema*/awa.go_on(
    p_claim_slots smallint[], p_nonces bigint[], p_receipts bigint[], p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_count   integer := cardinality(p_receipts);
    v_resumed integer;
BEGIN
    SELECT count(*) INTO v_resumed
    FROM /*schema*/awa.end_attempts(
        p_claim_slots, p_nonces, p_receipts, array_fill(10::smallint, ARRAY[v_count]),
        array_fill('carried'::text, ARRAY[v_count]), array_fill(NULL::bigint, ARRAY[v_count]),
        array_fill(NULL::text, ARRAY[v_count]), array_fill(NULL::json, ARRAY[v_count]), p_now);
    IF v_resumed <> v_count THEN
        RAISE EXCEPTION 'of % attempts that are held only % could go on', v_count, v_resumed
            USING ERRCODE = 'AW002', CONSTRAINT = 'AW002', HINT = 'a row of leases was changed by hand';
    END IF;
END
$awa$;
