-- Purpose: lets look-ups in a slot skip the ranges of one BRIN index that do not matter to them. Only ranges that are full,
--   with one to spare behind the newest page: an append into a summarised range would write to the log. Of a slot that is
--   drained also the last, since hardly anything is appended there any more.
-- Parameters: table; index; pages per range of the index; whether the slot is drained.
-- Returns: how many ranges were summarised; at most 256 unless the slot is drained.
-- Locks: SHARE UPDATE EXCLUSIVE on the table, which keeps nobody from reading and appending.
-- Caller: summarise_slots.
CREATE OR REPLACE FUNCTION /*schema*/awa.summarise_index(
    p_table regclass, p_index regclass, p_pages integer, p_is_drained boolean)
RETURNS integer LANGUAGE plpgsql VOLATILE AS $awa$
DECLARE
    v_last  integer := pg_relation_size(p_table) / current_setting('block_size')::integer / p_pages - 2;
    v_total integer := 0;
BEGIN
    IF p_is_drained THEN
        RETURN CASE WHEN pg_relation_size(p_table) > 0 THEN brin_summarize_new_values(p_index) ELSE 0 END;
    END IF;
    -- Newest first, until one was summarised before: all before it were as well, unless very much was appended since the
    -- last time. Such a gap is read by look-ups until the slot is drained.
    FOR v_range IN REVERSE v_last..greatest(v_last - 255, 0) LOOP
        EXIT WHEN brin_summarize_range(p_index, v_range::bigint * p_pages) = 0;
        v_total := v_total + 1;
    END LOOP;
    RETURN v_total;
END
$awa$;
