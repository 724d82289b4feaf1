-- Purpose: gives the tables, views and functions that were just made for a slot the grants of those of slot 0, so that a role
--   that was let in is not locked out when the ring comes to the slot.
-- Parameters: the slot. What has grants already, by default privileges for example, is left alone.
-- Returns: nothing.
-- Locks: none that matter.
-- Caller: Operator::grow_ring.
CREATE OR REPLACE FUNCTION /*schema*/awa.grant_as_slot_0(p_slot smallint) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $awa$
DECLARE
    v_made  record;
    v_grant record;
BEGIN
    FOR v_made IN
        SELECT format('TABLE %I.%I', n.nspname, c.relname) AS name, m.relacl AS grants, m.relowner AS owner
        FROM pg_namespace AS n
        JOIN pg_class AS c ON c.relnamespace = n.oid
        JOIN pg_class AS m ON m.relnamespace = n.oid AND m.relkind = c.relkind
            AND m.relname = regexp_replace(c.relname, format('_%s$', p_slot), '_0')
        WHERE n.nspname = '/*schema*/awa' AND c.relkind IN ('r', 'v') AND c.relname ~ format('_%s$', p_slot)
          AND c.relacl IS NULL AND m.relacl IS NOT NULL
        UNION ALL
        SELECT format('ROUTINE %I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)), m.proacl,
               m.proowner
        FROM pg_namespace AS n
        JOIN pg_proc AS p ON p.pronamespace = n.oid
        JOIN pg_proc AS m ON m.pronamespace = n.oid AND m.proargtypes = p.proargtypes
            AND m.proname = regexp_replace(p.proname, format('_%s$', p_slot), '_0')
        WHERE n.nspname = '/*schema*/awa' AND p.proname ~ format('_%s$', p_slot)
          AND p.proacl IS NULL AND m.proacl IS NOT NULL
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM PUBLIC', v_made.name);
        FOR v_grant IN
            SELECT a.privilege_type AS privilege, CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS suffix,
                   CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS grantee
            FROM aclexplode(v_made.grants) AS a WHERE a.grantee <> v_made.owner
        LOOP
            EXECUTE format('GRANT %s ON %s TO %s%s', v_grant.privilege, v_made.name, v_grant.grantee, v_grant.suffix);
        END LOOP;
    END LOOP;
END
$awa$;
