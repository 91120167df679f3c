-- The description of a home reads only what belongs to the home: each step begins at its schema or at its tables, and uses an index.
-- Postgres would otherwise read the catalogs of all homes in the database, with statistics that can be old.

-- See 016. Everything in a schema depends on it, which finds the tables and the functions.
create or replace function {{schema}}.home_structure_of(place name, tables name[])
returns table (kind text, name text, definition text) language sql stable
set search_path = '' set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
  with home as (
    select oid, nspname, nspowner, regexp_replace(nspname, '_pristine$', '') as id from pg_namespace where nspname = place
  ), described as (
    select c.oid, c.relname, c.relkind, c.relowner, c.relacl, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity, c.reloptions, home.nspowner
    from home join pg_depend e on e.refclassid = 'pg_namespace'::regclass and e.refobjid = home.oid and e.classid = 'pg_class'::regclass
      join pg_class c on c.oid = e.objid
    where c.relkind in ('r', 'p', 'v', 'm', 'f') and (c.relname = any (tables) or c.relowner = home.nspowner)
  ), columns as materialized (
    select t.relname, a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attidentity, a.attgenerated, a.attcollation, a.attacl
    from described t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
  ), parts (kind, name, definition) as (
    select 'table', t.relname::text, concat_ws('|', t.relkind, t.relpersistence, t.relrowsecurity, t.relforcerowsecurity, array_to_string(t.reloptions, ','),
      t.relowner = t.nspowner, exists (select from pg_inherits where inhrelid = t.oid) or exists (select from pg_inherits where inhparent = t.oid))
    from described t
    union all
    select 'column', format('%s.%s', a.relname, a.attname), format('%s|%s|%s|%s|%s|%s', format_type(a.atttypid, a.atttypmod), a.attnotnull,
      a.attidentity, a.attgenerated, pg_get_expr(d.adbin, d.adrelid), (select collname from pg_collation where oid = a.attcollation and collname <> 'default'))
    from columns a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    union all
    select 'constraint', format('%s.%s', t.relname, n.conname), replace(pg_get_constraintdef(n.oid), ' NOT VALID', '')
    from described t join pg_constraint n on n.conrelid = t.oid where n.contype <> 'n'
    union all
    select 'index', format('%s.%s', t.relname, c.relname), concat_ws('|', pg_get_indexdef(c.oid), i.indisvalid)
    from described t join pg_index i on i.indrelid = t.oid join pg_class c on c.oid = i.indexrelid
    where not exists (select from pg_constraint n where n.conrelid = t.oid and n.conindid = i.indexrelid and n.contype in ('p', 'u', 'x'))
    union all
    select 'trigger', format('%s.%s', t.relname, g.tgname), concat_ws('|', pg_get_triggerdef(g.oid), g.tgenabled)
    from described t join pg_trigger g on g.tgrelid = t.oid where not g.tgisinternal
    union all
    select 'policy', format('%s.%s', t.relname, p.polname),
      concat_ws('|', p.polcmd, p.polpermissive, p.polroles::regrole[]::text, pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
    from described t join pg_policy p on p.polrelid = t.oid
    union all
    select 'rule', format('%s.%s', t.relname, r.rulename), pg_get_ruledef(r.oid) from described t join pg_rewrite r on r.ev_class = t.oid where t.relkind <> 'v'
    union all
    select 'privilege', format('%s.%s', t.relname, replace(coalesce(grantee.rolname, 'public'), home.id, '')),
      string_agg(e.privilege_type || case when e.is_grantable then '*' else '' end, ',' order by e.privilege_type)
    from home, described t, aclexplode(coalesce(t.relacl, acldefault('r', t.relowner))) e left join pg_roles grantee on grantee.oid = e.grantee
    group by t.relname, grantee.rolname, home.id
    union all
    select 'column privilege', format('%s.%s', a.relname, a.attname), a.attacl::text from columns a where a.attacl is not null
    union all
    select 'function', format('%s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)), concat_ws('|', md5(replace(p.prosrc, home.nspname, '')),
      p.prosecdef, p.provolatile, p.prorettype::regtype, p.prolang, array_to_string(p.proconfig, ','), p.proacl is null)
    from home join pg_depend e on e.refclassid = 'pg_namespace'::regclass and e.refobjid = home.oid and e.classid = 'pg_proc'::regclass
      join pg_proc p on p.oid = e.objid
    where p.proowner = home.nspowner
  )
  select parts.kind, parts.name, regexp_replace(replace(replace(parts.definition, home.nspname, home.id), home.id, ''), '[()\s]', '', 'g') from home, parts
$$;
