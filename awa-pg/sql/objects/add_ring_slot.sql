-- Purpose: adds a slot to a ring: a child of each of its tables, made like those of slot 0, and its row of control. The
--   functions with a branch per slot are created anew in the same transaction, by the caller.
-- Parameters: name of the ring; number of the slot, the next one.
-- Returns: how many children were made.
-- Locks: SHARE UPDATE EXCLUSIVE on the partitioned tables, which neither readers nor writers of jobs meet; ROW EXCLUSIVE on
--   the control table.
-- Caller: Operator::grow_ring.
-- depends on: add_slot_child
CREATE OR REPLACE FUNCTION /*schema*/awa.add_ring_slot(p_ring text, p_slot smallint) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_keys   CONSTANT text[] := CASE p_ring WHEN 'queue' THEN '{ready_slot,done_slot}' WHEN 'claim' THEN '{claim_slot}'
                                WHEN 'lease' THEN '{lease_slot}' END;
    v_parent oid;
    v_made   integer := 0;
BEGIN
    FOR v_parent IN
        SELECT p.partrelid
        FROM pg_partitioned_table AS p
        JOIN pg_class AS c ON c.oid = p.partrelid
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_attribute AS a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
        WHERE n.nspname = '/*schema*/awa' AND p.partnatts = 1 AND a.attname = ANY (v_keys)
        ORDER BY p.partrelid
    LOOP
        PERFORM /*schema*/awa.add_slot_child(v_parent, p_slot);
        v_made := v_made + 1;
    END LOOP;
    IF v_made = 0 THEN
        RAISE EXCEPTION 'the % ring has no tables', p_ring USING ERRCODE = 'AW002', CONSTRAINT = 'AW002', HINT = 'run `awa doctor`';
    END IF;
    CASE p_ring
    WHEN 'queue' THEN
        INSERT INTO /*schema*/awa.queue_ring_slots (generation, slot, state) VALUES (0, p_slot, 'free');
    WHEN 'claim' THEN
        INSERT INTO /*schema*/awa.claim_ring_slots (generation, slot, state) VALUES (0, p_slot, 'free');
    WHEN 'lease' THEN
        INSERT INTO /*schema*/awa.lease_ring_slots (generation, slot, state) VALUES (0, p_slot, 'free');
    END CASE;
    RETURN v_made;
END
$awa$;
