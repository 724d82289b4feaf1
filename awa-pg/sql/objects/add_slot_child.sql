-- Purpose: makes the child of a partitioned table for one more slot, like the one of slot 0: columns, checks, settings,
--   indexes, constraints and how its rows are named in replication. It is made apart and attached, because CREATE TABLE .. PARTITION OF would wait for
--   every transaction that has written to the table, and let all others wait behind it.
-- Parameters: the partitioned table; the slot.
-- Returns: nothing.
-- Locks: SHARE UPDATE EXCLUSIVE on the partitioned table.
-- Caller: add_ring_slot.
CREATE OR REPLACE FUNCTION /*schema*/awa.add_slot_child(p_parent oid, p_slot smallint) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_like   record;
    v_index  record;
    v_child  text;
    v_name   text;
    v_before text;
BEGIN
    SELECT n.nspname AS schema, t.relname AS parent, c.oid, c.relname AS name,
           (SELECT string_agg(format('%s = %s', o.name, o.value), ', ')
            FROM (SELECT s.option_name AS name, s.option_value AS value FROM pg_options_to_table(c.reloptions) AS s
                  UNION ALL
                  SELECT 'toast.' || s.option_name, s.option_value
                  FROM pg_class AS w, pg_options_to_table(w.reloptions) AS s WHERE w.oid = c.reltoastrelid) AS o) AS settings
    INTO STRICT v_like
    FROM pg_class AS t
    JOIN pg_namespace AS n ON n.oid = t.relnamespace
    JOIN pg_inherits AS i ON i.inhparent = t.oid
    JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE t.oid = p_parent AND c.relname = t.relname || '_0';
    v_child := format('%I.%I', v_like.schema, v_like.parent || '_' || p_slot);
    EXECUTE format('CREATE TABLE %s (LIKE %I.%I INCLUDING ALL EXCLUDING INDEXES EXCLUDING STATISTICS)%s', v_child,
        v_like.schema, v_like.name, ' WITH (' || v_like.settings || ')');
    FOR v_index IN
        SELECT x.relname AS name, i.indisunique AS is_unique, m.amname AS method, pg_get_indexdef(x.oid) AS def,
               k.oid IS NOT NULL AS is_constraint, i.indisreplident AS is_identity,
               pg_get_constraintdef(k.oid) AS constraint_def
        FROM pg_index AS i
        JOIN pg_class AS x ON x.oid = i.indexrelid
        JOIN pg_am AS m ON m.oid = x.relam
        LEFT JOIN pg_constraint AS k ON k.conindid = x.oid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x')
        WHERE i.indrelid = v_like.oid
        ORDER BY x.oid
    LOOP
        v_name := regexp_replace(v_index.name, '_0(_[a-z]+)?$', format('_%s\1', p_slot));
        IF v_name = v_index.name THEN
            RAISE EXCEPTION 'index % does not end with the number of its slot', v_index.name;
        END IF;
        IF v_index.is_constraint THEN
            EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I %s', v_child, v_name, v_index.constraint_def);
            CONTINUE;
        END IF;
        v_before := format('CREATE %sINDEX %I ON %I.%I ', CASE WHEN v_index.is_unique THEN 'UNIQUE ' ELSE '' END,
            v_index.name, v_like.schema, v_like.name);
        IF NOT starts_with(v_index.def, v_before) THEN
            RAISE EXCEPTION 'the definition of index % begins in another way than expected', v_index.name;
        END IF;
        EXECUTE format('CREATE %sINDEX %I ON %s %s', CASE WHEN v_index.is_unique THEN 'UNIQUE ' ELSE '' END, v_name, v_child,
            substr(v_index.def, length(v_before) + 1));
        IF v_index.is_identity THEN
            EXECUTE format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', v_child, v_name);
        END IF;
        IF v_index.method = 'brin' THEN
            -- A new index has its first range summarised, and would then write to the log with each row.
            PERFORM brin_desummarize_range(format('%I.%I', v_like.schema, v_name)::regclass, 0);
        END IF;
    END LOOP;
    EXECUTE format('ALTER TABLE %I.%I ATTACH PARTITION %s FOR VALUES IN (%s)', v_like.schema, v_like.parent, v_child, p_slot);
END
$awa$;
