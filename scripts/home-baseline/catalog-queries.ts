// Queries of Postgres' catalogs for the parts of a home. `$1` is the name of its schema.

/** The condition of the home's tables, `c`. */
const isOfHome = `c.relnamespace = $1::regnamespace and c.relkind = 'r'`

export const tablesSql = `
  select c.relname as name, array_to_string(c.reloptions, ', ') as options,
    array(select concat_ws(' ', quote_ident(a.attname), format_type(a.atttypid, a.atttypmod),
        case when a.attstorage <> y.typstorage then 'storage ' ||
          case a.attstorage when 'e' then 'external' when 'm' then 'main' when 'p' then 'plain' else 'extended' end end,
        case when a.attcollation <> y.typcollation then
          'collate ' || (select quote_ident(collname) from pg_collation where oid = a.attcollation) end,
        case when a.attnotnull then 'not null' end,
        case when a.attidentity = 'a' then 'generated always as identity'
          when a.attgenerated = 's' then 'generated always as (' || pg_get_expr(d.adbin, d.adrelid) || ') stored'
          when d.adbin is not null then 'default ' || pg_get_expr(d.adbin, d.adrelid) end)
      from pg_attribute a join pg_type y on y.oid = a.atttypid
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum) as columns,
    array(select format('constraint %I %s', n.conname, pg_get_constraintdef(n.oid)) from pg_constraint n
      where n.conrelid = c.oid and n.contype in ('c', 'p', 'u', 'f')
      order by array_position('{c,p,u,f}'::"char"[], n.contype), n.oid) as constraints
  from pg_class c where ${isOfHome} and c.relname <> $2 order by c.oid`

export const indexesSql = `
  select pg_get_indexdef(i.indexrelid) as statement from pg_index i join pg_class c on c.oid = i.indrelid where ${isOfHome}
    and not exists (select from pg_constraint n where n.conindid = i.indexrelid and n.contype in ('p', 'u')) order by i.indexrelid`

export const functionsSql = `
  select rtrim(pg_get_functiondef(p.oid), E'\\n') as statement from pg_proc p where p.pronamespace = $1::regnamespace order by p.oid`

export const triggersSql = `
  select pg_get_triggerdef(g.oid) as statement from pg_trigger g join pg_class c on c.oid = g.tgrelid where ${isOfHome}
    and not g.tgisinternal order by g.oid`

export const rowSecuritySql = `
  select format('alter table {{schema}}.%I enable row level security, force row level security', c.relname) as statement
  from pg_class c where ${isOfHome} and c.relrowsecurity and c.relforcerowsecurity order by c.oid`

export const policiesSql = `
  select format('create policy %I on {{schema}}.%I%s for %s', p.polname, c.relname,
      case when not p.polpermissive then ' as restrictive' end,
      case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end)
    || coalesce(' using (' || pg_get_expr(p.polqual, p.polrelid) || ')', '')
    || coalesce(' with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '') as statement
  from pg_policy p join pg_class c on c.oid = p.polrelid where ${isOfHome} order by p.oid`

export const privilegesSql = `
  select relation, column_name as "column", grantee, array_agg(privilege order by privilege) as privileges from (
    select c.oid, 0 as number, c.relname as relation, null as column_name,
      e.grantee::regrole::text as grantee, e.privilege_type as privilege
    from pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) e
    where ${isOfHome}
    union all
    select c.oid, a.attnum, c.relname, quote_ident(a.attname), e.grantee::regrole::text, e.privilege_type
    from pg_class c join pg_attribute a on a.attrelid = c.oid, aclexplode(a.attacl) e
    where ${isOfHome} and a.attacl is not null
  ) as found group by oid, number, relation, column_name, grantee order by oid, number, grantee`

export const undescribedSql = `
  select format('%s %s', c.relkind, c.relname) as what from pg_class c
    where c.relnamespace = $1::regnamespace and (c.relkind not in ('r', 'i', 'S') or c.relrowsecurity <> c.relforcerowsecurity)
  union all select format('the privileges of %s', p.proname) from pg_proc p where p.pronamespace = $1::regnamespace and p.proacl is not null
  union all select format('the routine %s', p.proname) from pg_proc p where p.pronamespace = $1::regnamespace and p.prokind <> 'f'
  union all select format('the policy %s', p.polname) from pg_policy p join pg_class c on c.oid = p.polrelid
    where c.relnamespace = $1::regnamespace and p.polroles <> '{0}'
  union all select format('the type %s', y.typname) from pg_type y
    where y.typnamespace = $1::regnamespace and y.typrelid = 0 and y.typelem = 0
  union all select format('the trigger %s', g.tgname) from pg_trigger g join pg_class c on c.oid = g.tgrelid
    where c.relnamespace = $1::regnamespace and not g.tgisinternal and g.tgenabled <> 'O'
  union all select format('a comment on %s', d.objoid) from pg_description d join pg_class c on c.oid = d.objoid
    where d.classoid = 'pg_class'::regclass and c.relnamespace = $1::regnamespace`
