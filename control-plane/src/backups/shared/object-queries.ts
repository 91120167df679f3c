// Queries for the objects that a tenant has in its home, with the statements that create them. Pure. They run with the
// home's schema as search path, so that Postgres prints no name of it. `$1` is the schema, `$2` the home's system role, whose
// objects are the service's and are created by migrations.
//
// Columns: key (class and OID), kind, identity, phase, step (order within the phase), head, roles, tail.

const space = '(select oid from pg_catalog.pg_namespace where nspname = $1)'
const system = '(select oid from pg_catalog.pg_roles where rolname = $2)'
const key = (catalog: string, oid: string) =>
  `'pg_catalog.${catalog}'::pg_catalog.regclass::pg_catalog.oid || ':' || ${oid}`
const none = "'{}'::pg_catalog.text[], ''"
const ownTable = `c.relnamespace = ${space} and c.relowner <> ${system}`

const comment = (catalog: string, kind: string, name: string, from: string) => `
  select ${key('pg_description', 'd.objoid')} || ':' || d.objsubid, 'comment', pg_catalog.format('${kind} %s', ${name}), 'after', 40,
    pg_catalog.format('comment on ${kind} %s is %L', ${name}, d.description), ${none}
  from pg_catalog.pg_description d join ${from}
  where d.classoid = 'pg_catalog.${catalog}'::pg_catalog.regclass`

/** Objects other than tables and policies. */
export const objectsSql = [
  `select ${key('pg_type', 't.oid')}, 'type', t.typname || ' enum', 'before', 1,
     pg_catalog.format('create type %I as enum (%s)', t.typname, (select pg_catalog.string_agg(pg_catalog.quote_literal(enumlabel),
       ', ' order by enumsortorder)
       from pg_catalog.pg_enum where enumtypid = t.oid)), ${none}
   from pg_catalog.pg_type t where t.typnamespace = ${space} and t.typtype = 'e'`,
  `select ${key('pg_type', 't.oid')}, 'type', t.typname || ' domain', 'before', 1,
     pg_catalog.format('create domain %I as %s%s%s%s%s', t.typname, pg_catalog.format_type(t.typbasetype, t.typtypmod),
       (select pg_catalog.format(' collate %I', collname) from pg_catalog.pg_collation l join pg_catalog.pg_type b on b.oid =
         t.typbasetype
         where l.oid = t.typcollation and l.oid <> b.typcollation),
       ' default ' || t.typdefault, case when t.typnotnull then ' not null' end,
       (select pg_catalog.string_agg(pg_catalog.format(' constraint %I %s', conname, pg_catalog.pg_get_constraintdef(oid)), '' order by
         conname)
         from pg_catalog.pg_constraint where contypid = t.oid and contype = 'c')), ${none}
   from pg_catalog.pg_type t where t.typnamespace = ${space} and t.typtype = 'd'`,
  `select ${key('pg_class', 'c.oid')}, 'type', c.relname || ' composite', 'before', 1,
     pg_catalog.format('create type %I as (%s)', c.relname, (select pg_catalog.string_agg(
       pg_catalog.format('%I %s%s', attname, pg_catalog.format_type(atttypid, atttypmod),
         (select pg_catalog.format(' collate %I', collname) from pg_catalog.pg_collation l join pg_catalog.pg_type b on b.oid = atttypid
           where l.oid = attcollation and l.oid <> b.typcollation)), ', ' order by attnum)
       from pg_catalog.pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped)), ${none}
   from pg_catalog.pg_class c where ${ownTable} and c.relkind = 'c'`,
  `select ${key('pg_class', 'c.oid')}, 'sequence', c.relname::pg_catalog.text, 'before', 2,
     pg_catalog.format('create %ssequence %I as %s increment by %s minvalue %s maxvalue %s start with %s cache %s%s',
       case c.relpersistence when 'u' then 'unlogged ' end, c.relname, pg_catalog.format_type(s.seqtypid, null), s.seqincrement,
         s.seqmin, s.seqmax,
       s.seqstart, s.seqcache, case when s.seqcycle then ' cycle' end), ${none}
   from pg_catalog.pg_class c join pg_catalog.pg_sequence s on s.seqrelid = c.oid where ${ownTable}
     and not exists (select from pg_catalog.pg_depend where classid = 'pg_catalog.pg_class'::pg_catalog.regclass and objid = c.oid and
       deptype = 'i')`,
  `select ${key('pg_class', 'c.oid')} || ':owned', 'sequence of a column', pg_catalog.format('%s %s.%s', c.relname, t.relname,
    a.attname), 'after', 12,
     pg_catalog.format('alter sequence %I owned by %I.%I', c.relname, t.relname, a.attname), ${none}
   from pg_catalog.pg_class c join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.objid = c.oid
     and d.deptype = 'a'
       and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
     join pg_catalog.pg_class t on t.oid = d.refobjid join pg_catalog.pg_attribute a on a.attrelid = t.oid and a.attnum = d.refobjsubid
   where ${ownTable} and c.relkind = 'S' and t.relnamespace = c.relnamespace`,
  `select ${key('pg_proc', 'p.oid')}, 'function', pg_catalog.format('%s(%s) %s %s', p.proname,
    pg_catalog.pg_get_function_identity_arguments(p.oid), p.prosecdef,
       pg_catalog.md5(p.prosrc)), 'before', 3,
     pg_catalog.regexp_replace(pg_catalog.pg_get_functiondef(p.oid), '^(CREATE OR REPLACE (?:FUNCTION|PROCEDURE) )' || $1 || '\\.',
       '\\1'), ${none}
   from pg_catalog.pg_proc p where p.pronamespace = ${space} and p.proowner <> ${system} and p.prokind in ('f', 'p', 'w')`,
  `select ${key('pg_class', 'c.oid')}, 'view', pg_catalog.format('%s %s', c.relname, c.relkind), 'before', 6,
     pg_catalog.format('create %sview %I%s as %s%s', case c.relkind when 'm' then 'materialized ' end, c.relname,
       ' with (' || pg_catalog.array_to_string(c.reloptions, ', ') || ')', pg_catalog.rtrim(pg_catalog.pg_get_viewdef(c.oid), '; '),
       case c.relkind when 'm' then ' with no data' end), ${none}
   from pg_catalog.pg_class c where ${ownTable} and c.relkind in ('v', 'm')`,
  `select ${key('pg_class', 'c.oid')} || ':filled', 'content of a view', c.relname::pg_catalog.text, 'after', 35,
     -- The setting of the session would reject tables whose policies their owner obeys.
     pg_catalog.format('set local row_security = on; refresh materialized view %I', c.relname), ${none}
   from pg_catalog.pg_class c where ${ownTable} and c.relkind = 'm' and c.relispopulated`,
  `select ${key('pg_constraint', 'n.oid')}, 'constraint', pg_catalog.format('%s.%s %s %s', c.relname, n.conname, n.contype,
    n.convalidated),
     case when n.contype = 'c' and n.convalidated then 'before' else 'after' end, case n.contype when 'c' then 5 when 'f' then 20 else
       10 end,
     pg_catalog.format('alter table %I add constraint %I %s', c.relname, n.conname, pg_catalog.pg_get_constraintdef(n.oid)), ${none}
   from pg_catalog.pg_constraint n join pg_catalog.pg_class c on c.oid = n.conrelid
   where ${ownTable} and n.contype in ('c', 'p', 'u', 'x', 'f') and n.conparentid = 0 and n.conislocal`,
  `select ${key('pg_class', 'i.oid')}, 'index', pg_catalog.format('%s.%s', c.relname, i.relname), 'after', 11,
     pg_catalog.regexp_replace(pg_catalog.pg_get_indexdef(i.oid, 0, true), '^(CREATE (?:UNIQUE )?INDEX (?:"(?:[^"]|"")+"|\\S+) ON )ONLY ',
       '\\1'), ${none}
   from pg_catalog.pg_index x join pg_catalog.pg_class i on i.oid = x.indexrelid join pg_catalog.pg_class c on c.oid = x.indrelid
   where ${ownTable} and c.relkind in ('r', 'p', 'm') and x.indisvalid and not exists (select from pg_catalog.pg_constraint where
     conindid = i.oid and contype in ('p', 'u', 'x'))
     and not exists (select from pg_catalog.pg_inherits where inhrelid = i.oid)`,
  `select ${key('pg_statistic_ext', 's.oid')}, 'statistics', s.stxname::pg_catalog.text, 'after', 12,
     pg_catalog.regexp_replace(pg_catalog.pg_get_statisticsobjdef(s.oid), '^(CREATE STATISTICS )' || $1 || '\\.', '\\1'), ${none}
   from pg_catalog.pg_statistic_ext s where s.stxnamespace = ${space}`,
  `select ${key('pg_rewrite', 'w.oid')}, 'rule', pg_catalog.format('%s.%s', c.relname, w.rulename), 'after', 25,
    pg_catalog.pg_get_ruledef(w.oid, true), ${none}
   from pg_catalog.pg_rewrite w join pg_catalog.pg_class c on c.oid = w.ev_class where ${ownTable} and w.rulename <> '_RETURN'`,
  `select ${key('pg_trigger', 't.oid')}, 'trigger', pg_catalog.format('%s.%s', c.relname, t.tgname), 'after', 30,
    pg_catalog.pg_get_triggerdef(t.oid, true), ${none}
   from pg_catalog.pg_trigger t join pg_catalog.pg_class c on c.oid = t.tgrelid where ${ownTable} and not t.tgisinternal and
     t.tgparentid = 0`,
  `select ${key('pg_trigger', 't.oid')} || ':set', 'setting of a trigger', pg_catalog.format('%s.%s %s', c.relname, t.tgname,
    t.tgenabled), 'after', 36,
     pg_catalog.format('alter table %I %s trigger %I', c.relname,
       case t.tgenabled when 'D' then 'disable' when 'R' then 'enable replica' else 'enable always' end, t.tgname), ${none}
   from pg_catalog.pg_trigger t join pg_catalog.pg_class c on c.oid = t.tgrelid
   where ${ownTable} and not t.tgisinternal and t.tgparentid = 0 and t.tgenabled <> 'O'`,
  `select ${key('pg_class', 'c.oid')} || ':column ' || a.attnum, 'setting of a column',
     pg_catalog.format('%s.%s %s %s', c.relname, a.attname, a.attstattarget, o.options), 'after', 37,
     pg_catalog.format('alter table %1$I alter column %2$I set statistics %3$s' ||
         coalesce('; alter table %1$I alter column %2$I set (' || o.options || ')', ''),
       c.relname, a.attname, coalesce(a.attstattarget, -1)), ${none}
   from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid
     -- Others are of the server, and not of the home.
     cross join lateral (select pg_catalog.string_agg(option, ', ' order by option) as options
       from pg_catalog.unnest(a.attoptions) as option where option ~ '^n_distinct(_inherited)?=') as o
   where ${ownTable} and c.relkind in ('r', 'p', 'm') and a.attnum > 0 and not a.attisdropped
     and (a.attstattarget >= 0 or o.options is not null)`,
  `select ${key('pg_class', 'c.oid')} || ':identity', 'replica identity',
     pg_catalog.format('%s %s %s', c.relname, c.relreplident, i.relname), 'after', 37,
     pg_catalog.format('alter table %I replica identity %s', c.relname, case c.relreplident when 'f' then 'full' when 'n' then 'nothing'
       else pg_catalog.format('using index %I', i.relname) end), ${none}
   from pg_catalog.pg_class c left join pg_catalog.pg_index x on x.indrelid = c.oid and x.indisreplident
     left join pg_catalog.pg_class i on i.oid = x.indexrelid
   where ${ownTable} and c.relkind in ('r', 'p') and (c.relreplident in ('f', 'n') or c.relreplident = 'i' and i.oid is not null)`,
  `select ${key('pg_class', 'c.oid')} || ':security', 'row security', pg_catalog.format('%s %s %s', c.relname, c.relrowsecurity,
    c.relforcerowsecurity), 'after', 32,
     pg_catalog.format('alter table %I %s row level security, %s row level security', c.relname,
       case when c.relrowsecurity then 'enable' else 'disable' end, case when c.relforcerowsecurity then 'force' else 'no force' end),
         ${none}
   from pg_catalog.pg_class c where ${ownTable} and c.relkind in ('r', 'p') and (c.relrowsecurity or c.relforcerowsecurity)`,
  comment(
    'pg_proc',
    'routine',
    `d.objoid::pg_catalog.regprocedure`,
    `pg_catalog.pg_proc p on p.oid = d.objoid and p.pronamespace = ${space} and p.proowner <> ${system} and p.prokind in ('f', 'p', 'w')`,
  ),
  comment(
    'pg_type',
    'type',
    'd.objoid::pg_catalog.regtype',
    `pg_catalog.pg_type p on p.oid = d.objoid and p.typnamespace = ${space} and p.typtype in ('e', 'd')`,
  ),
  ...[
    ['r', 'table'],
    ['p', 'table'],
    ['v', 'view'],
    ['m', 'materialized view'],
    ['S', 'sequence'],
  ].map(([relkind, kind = '']) =>
    comment(
      'pg_class',
      kind,
      'd.objoid::pg_catalog.regclass',
      `pg_catalog.pg_class c on c.oid = d.objoid and d.objsubid = 0 and ${ownTable} and c.relkind = '${relkind}'`,
    ),
  ),
  comment(
    'pg_class',
    'column',
    `pg_catalog.format('%I.%I', c.relname, a.attname)`,
    `pg_catalog.pg_class c on c.oid = d.objoid and ${ownTable} and c.relkind in ('r', 'p', 'v', 'm')
     join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = d.objsubid and not a.attisdropped`,
  ),
  `select ${key('pg_proc', 'p.oid')} || ':closed', 'grant', pg_catalog.format('routine %s %s', p.oid::pg_catalog.regprocedure,
    'revoked'), 'after', 41,
     pg_catalog.format('revoke all on routine %s from public', p.oid::pg_catalog.regprocedure), ${none}
   from pg_catalog.pg_proc p where p.pronamespace = ${space} and p.proowner <> ${system} and p.prokind in ('f', 'p', 'w') and p.proacl
     is not null`,
  `select ${key('pg_proc', 'p.oid')} || ':' || e.grantee, 'grant', pg_catalog.format('routine %s ', p.oid::pg_catalog.regprocedure),
    'after', 42,
     pg_catalog.format('grant execute on routine %s to ', p.oid::pg_catalog.regprocedure), array[coalesce(g.rolname,
       'public')]::pg_catalog.text[], ''
   from pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) e left join pg_catalog.pg_roles g on g.oid = e.grantee
   where p.pronamespace = ${space} and p.proowner <> ${system} and p.prokind in ('f', 'p', 'w') and e.grantee <> p.proowner`,
  `select ${key('pg_class', 'c.oid')} || ':' || e.grantee || e.is_grantable, 'grant',
     pg_catalog.format('%s %s', c.relname, pg_catalog.string_agg(e.privilege_type, ', ' order by e.privilege_type)), 'after', 42,
     pg_catalog.format('grant %s on %s %I to ', pg_catalog.string_agg(e.privilege_type, ', ' order by e.privilege_type),
       case c.relkind when 'S' then 'sequence' else 'table' end, c.relname), array[coalesce(g.rolname, 'public')]::pg_catalog.text[],
     case when e.is_grantable then ' with grant option' else '' end
   from pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) e left join pg_catalog.pg_roles g on g.oid = e.grantee
   where ${ownTable} and c.relkind in ('r', 'p', 'v', 'm', 'S') and e.grantee <> c.relowner group by c.oid, c.relname, c.relkind,
     e.grantee, e.is_grantable, g.rolname`,
  `select ${key('pg_attribute', 'c.oid')} || ':' || a.attnum || ':' || e.grantee || e.is_grantable, 'grant',
     pg_catalog.format('%s.%s %s', c.relname, a.attname, pg_catalog.string_agg(e.privilege_type, ', ' order by e.privilege_type)),
       'after', 43,
     pg_catalog.format('grant %s on table %I to ', pg_catalog.string_agg(pg_catalog.format('%s (%I)', e.privilege_type, a.attname),
       ', ' order by e.privilege_type), c.relname),
     array[coalesce(g.rolname, 'public')]::pg_catalog.text[], case when e.is_grantable then ' with grant option' else '' end
   from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped,
     pg_catalog.aclexplode(a.attacl) e left join pg_catalog.pg_roles g on g.oid = e.grantee
   where ${ownTable} and c.relkind in ('r', 'p', 'v', 'm') and e.grantee <> c.relowner
   group by c.oid, c.relname, a.attnum, a.attname, e.grantee, e.is_grantable, g.rolname`,
  `select 'default:' || a.oid || e.grantee || e.is_grantable, 'default privilege',
     pg_catalog.format('%s %s %s', a.defaclobjtype, e.is_grantable, pg_catalog.string_agg(e.privilege_type, ', ' order by
       e.privilege_type)), 'default', 0,
     pg_catalog.format('grant %s on %s to ', pg_catalog.string_agg(e.privilege_type, ', ' order by e.privilege_type),
       case a.defaclobjtype when 'S' then 'sequences' when 'f' then 'functions' when 'T' then 'types' else 'tables' end),
     array[coalesce(g.rolname, 'public')]::pg_catalog.text[], case when e.is_grantable then ' with grant option' else '' end
   from pg_catalog.pg_default_acl a, pg_catalog.aclexplode(a.defaclacl) e left join pg_catalog.pg_roles g on g.oid = e.grantee
   where a.defaclnamespace = ${space} and a.defaclrole <> ${system} and a.defaclobjtype in ('r', 'S', 'f', 'T') and e.grantee <>
     a.defaclrole
   group by a.oid, a.defaclobjtype, e.grantee, e.is_grantable, g.rolname`,
]
  .map((query) => `select * from (${query}) as found (key, kind, identity, phase, step, head, roles, tail)`)
  .join('\nunion all ')

/** Policies. Roles follow `head`, and `tail` follows them. */
export const policiesSql = `
  select ${key('pg_policy', 'p.oid')} as key, 'policy' as kind, pg_catalog.format('%s.%s %s %s', c.relname, p.polname, p.polcmd,
    p.polpermissive) as identity,
    'after' as phase, 31 as step,
    pg_catalog.format('create policy %I on %I as %s for %s to ', p.polname, c.relname, case when p.polpermissive then 'permissive' else
      'restrictive' end,
      case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end) as head,
    array(select coalesce(r.rolname, 'public') from pg_catalog.unnest(p.polroles) as named (oid) left join pg_catalog.pg_roles r on
      r.oid = named.oid
      order by 1)::pg_catalog.text[] as roles,
    coalesce(' using (' || pg_catalog.pg_get_expr(p.polqual, p.polrelid) || ')', '') || coalesce(' with check (' ||
      pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid) || ')', '') as tail
  from pg_catalog.pg_policy p join pg_catalog.pg_class c on c.oid = p.polrelid where ${ownTable}`

/** Tables with their columns, as JSON. */
export const tablesSql = `
  select ${key('pg_class', 'c.oid')} as key, c.oid::pg_catalog.text as oid, c.relname as name, c.relowner = ${system} as "isService",
    c.relkind as relkind,
    c.relpersistence as persistence, pg_catalog.array_to_string(c.reloptions, ', ') as options, pg_catalog.pg_get_partkeydef(c.oid) as
      "partitionKey",
    case when c.relispartition then pg_catalog.pg_get_expr(c.relpartbound, c.oid) end as bound,
    (select pg_catalog.quote_ident(o.relname) from pg_catalog.pg_inherits i join pg_catalog.pg_class o on o.oid = i.inhparent where
      i.inhrelid = c.oid limit 1) as parent,
    exists (select from pg_catalog.pg_constraint n join pg_catalog.pg_attribute t on t.attrelid = c.oid and t.attname = 'tenant_id'
      where n.conrelid = c.oid and n.contype = 'c' and pg_catalog.pg_get_constraintdef(n.oid) =
        pg_catalog.format('CHECK ((tenant_id = %L::text))', $3::pg_catalog.text)) as "isTagged",
    coalesce((select pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('name', a.attname, 'type', pg_catalog.format_type(a.atttypid,
      a.atttypmod), 'required', a.attnotnull,
        'generated', a.attgenerated, 'identity', a.attidentity, 'expression', pg_catalog.pg_get_expr(d.adbin, d.adrelid),
        'collation', (select pg_catalog.quote_ident(collname) from pg_catalog.pg_collation l where l.oid = a.attcollation and l.oid <>
          t.typcollation),
        'storage', case when a.attstorage <> t.typstorage then a.attstorage end, 'compression', case a.attcompression when 'p' then
          'pglz' when 'l' then 'lz4' end,
        'sequence', (select pg_catalog.format('sequence name %I increment by %s minvalue %s maxvalue %s start with %s cache %s%s',
          q.relname, s.seqincrement, s.seqmin, s.seqmax, s.seqstart,
            s.seqcache, case when s.seqcycle then ' cycle' end) from pg_catalog.pg_depend b join pg_catalog.pg_class q on q.oid =
              b.objid and q.relkind = 'S'
          join pg_catalog.pg_sequence s on s.seqrelid = q.oid where b.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and
            b.deptype = 'i' and b.refclassid = b.classid
          and b.refobjid = c.oid and b.refobjsubid = a.attnum limit 1)
      ) order by a.attnum)
      from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid left join pg_catalog.pg_attrdef d on (d.adrelid,
        d.adnum) = (a.attrelid, a.attnum)
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped), '[]') as columns
  from pg_catalog.pg_class c where c.relnamespace = ${space} and c.relkind in ('r', 'p') order by c.relname`

/** The size of all definitions, which is read before they are. */
export const definitionBytesSql = `
  select coalesce((select pg_catalog.sum(pg_catalog.octet_length(identity) + pg_catalog.octet_length(head) + pg_catalog.octet_length(tail))
      from (${objectsSql} union all ${policiesSql}) as objects), 0)
    + coalesce((select pg_catalog.sum(pg_catalog.octet_length(columns::pg_catalog.text)) from (${tablesSql}) as tables), 0) as bytes`

/** Sequences, with the statement that reads each. */
export const sequencesSql = `
  select c.relname as name, c.relowner = ${system} as "isService" from pg_catalog.pg_class c
  where c.relnamespace = ${space} and c.relkind = 'S' order by c.relname`

/** The first object of a kind that a backup cannot contain, as a text. */
export const unsupportedSql = `
  select found.what from (
    select 'the aggregate "' || proname || '"' from pg_catalog.pg_proc where pronamespace = ${space} and prokind = 'a'
    union all select 'the type "' || typname || '"' from pg_catalog.pg_type t where typnamespace = ${space} and (typtype in ('r', 'p')
      or typtype = 'b' and not exists
      (select from pg_catalog.pg_type e where e.typarray = t.oid))
    union all select 'the table "' || relname || '", which inherits from another or from a type' from pg_catalog.pg_class c where
      relnamespace = ${space} and relkind in ('r', 'p')
      and (reloftype <> 0 or not relispartition and exists (select from pg_catalog.pg_inherits where inhrelid = c.oid))
    union all select 'the foreign table "' || relname || '"' from pg_catalog.pg_class where relnamespace = ${space} and relkind = 'f'
    union all select 'the operator ' || oprname from pg_catalog.pg_operator where oprnamespace = ${space}
    union all select 'the operator class "' || opcname || '"' from pg_catalog.pg_opclass where opcnamespace = ${space}
    union all select 'the operator family "' || opfname || '"' from pg_catalog.pg_opfamily where opfnamespace = ${space}
    union all select 'the collation "' || collname || '"' from pg_catalog.pg_collation where collnamespace = ${space}
    union all select 'the conversion "' || conname || '"' from pg_catalog.pg_conversion where connamespace = ${space}
    union all select 'the text search configuration "' || cfgname || '"' from pg_catalog.pg_ts_config where cfgnamespace = ${space}
    union all select 'the text search dictionary "' || dictname || '"' from pg_catalog.pg_ts_dict where dictnamespace = ${space}
  ) as found (what) limit 1`

/**
 * The objects on which each of the given ones (classes `$1`, OIDs `$2`) depends. Defaults, rules of views and types of tables
 * stand for their table or view.
 */
export const dependenciesSql = `
  with given as (
    select c as class, o as oid, c || ':' || o as key from rows from (pg_catalog.unnest($1::pg_catalog.oid[]),
      pg_catalog.unnest($2::pg_catalog.oid[])) as g (c, o)
    union select 'pg_catalog.pg_attrdef'::pg_catalog.regclass, d.oid, 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid || ':'
      || d.adrelid
      from pg_catalog.pg_attrdef d where d.adrelid = any ($2::pg_catalog.oid[])
    union select 'pg_catalog.pg_rewrite'::pg_catalog.regclass, w.oid, 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid || ':'
      || w.ev_class
      from pg_catalog.pg_rewrite w where w.ev_class = any ($2::pg_catalog.oid[]) and w.rulename = '_RETURN'
  )
  select distinct given.key as "from", coalesce(
      'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid || ':' || nullif(coalesce(r.typrelid, e.typrelid), 0),
      'pg_catalog.pg_type'::pg_catalog.regclass::pg_catalog.oid || ':' || e.oid,
      d.refclassid || ':' || d.refobjid) as "to"
  from given join pg_catalog.pg_depend d on d.classid = given.class and d.objid = given.oid
    left join pg_catalog.pg_type r on d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass and r.oid = d.refobjid and r.typrelid <> 0
    left join pg_catalog.pg_type e on d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass and e.typarray = d.refobjid and
      e.typarray <> 0
  where d.refobjid >= 16384 and not (d.deptype = 'a' and given.class = 'pg_catalog.pg_class'::pg_catalog.regclass
    and exists (select from pg_catalog.pg_class where oid = given.oid and relkind = 'S'))`
