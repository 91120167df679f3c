// Reads a home from Postgres' catalogs: every table, view, reference and function that may be served, as one JSON document.
// `publish.ts` decides which of them are served, and under which names.
import type { Statement } from '../../database/statement.ts'

/** A type as it is written in SQL, and its plain name. */
export interface HomeType {
  /**
   * The type with its modifier: `character(5)`. Without one, `bpchar` and `"bit"`, because plain `character` has length 1.
   */
  type: string
  /** The type behind domains, without a modifier: `character`. Older published catalogs do not have it. */
  base?: string
}

interface HomeColumn extends HomeType {
  name: string
  nullable: boolean
  default: string | null
  writable: boolean
}

export interface HomeRelation {
  name: string
  kind: 'table' | 'view'
  /** Whether row-level security is enabled; for a view: whether it reads with its caller's rights. */
  guarded: boolean
  comment: string | null
  columns: HomeColumn[]
  key: string[]
  unique: string[][]
  /** Names of the row-level security policies. Older published catalogs do not have them. */
  policies?: string[]
}

export interface HomeReference {
  name: string
  from: string
  to: string
  pairs: [string, string][]
}

export interface HomeRoutine {
  name: string
  comment: string | null
  reading: boolean
  /** All parameters, in order. `mode` is that of pg_proc. */
  arguments: (HomeType & { name: string; mode: 'i' | 'o' | 'b' | 'v' | 't' })[]
  /** The number of input parameters, counted from the last one, that have defaults. */
  defaults: number
  returns: { type: string; kind: 'void' | 'value' | 'row'; set: boolean; relation: string | null }
}

export interface HomeDescription {
  relations: HomeRelation[]
  references: HomeReference[]
  routines: HomeRoutine[]
}

/**
 * Returns SQL for the plain name of a type behind all domains.
 * @param type SQL of the type's OID
 */
const baseSql = (type: string) => `(with recursive behind as (
      select t.oid, t.typtype, t.typbasetype from pg_type t where t.oid = ${type}
      union all select t.oid, t.typtype, t.typbasetype from behind b join pg_type t on t.oid = b.typbasetype where b.typtype = 'd')
    select format_type(oid, null) from behind where typtype <> 'd')`

/** Returns one row with one column, `home`: a HomeDescription as JSON. The home is the search path's schema. */
export const introspection: Statement = {
  text: `
with home as (select oid from pg_namespace where nspname = current_schema()),
relations as (
  select c.oid, c.relname as name, case when c.relkind in ('v', 'm') then 'view' else 'table' end as kind,
    case when c.relkind = 'v' then coalesce((
        select option_value::boolean from pg_options_to_table(c.reloptions) where option_name = 'security_invoker'), false)
      else c.relrowsecurity end as guarded,
    obj_description(c.oid, 'pg_class') as comment
  from pg_class c join home on c.relnamespace = home.oid where c.relkind in ('r', 'p', 'v', 'm', 'f')),
columns as (
  select a.attrelid, json_agg(json_build_object(
      'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), 'base', ${baseSql('a.atttypid')}, 'nullable', not a.attnotnull,
      'default', case when a.attidentity = 'd' then format('nextval(%L)', pg_get_serial_sequence(a.attrelid::regclass::text, a.attname))
        when a.attgenerated = '' then pg_get_expr(d.adbin, d.adrelid) end,
      'writable', a.attgenerated = '' and a.attidentity <> 'a') order by a.attnum) as list
  from pg_attribute a join relations r on r.oid = a.attrelid left join pg_attrdef d on (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
  where a.attnum > 0 and not a.attisdropped group by 1),
keys as (
  select i.indrelid, i.indisprimary as is_primary,
    (select json_agg(a.attname order by n) from unnest(i.indkey::int2[]) with ordinality k (attnum, n)
      join pg_attribute a on (a.attrelid, a.attnum) = (i.indrelid, k.attnum)) as names
  from pg_index i join relations r on r.oid = i.indrelid
  where i.indisunique and i.indpred is null and i.indexprs is null and i.indnkeyatts = i.indnatts),
refs as (
  select k.conname as name, f.name as "from", t.name as "to",
    (select json_agg(json_build_array(a.attname, b.attname) order by n) from unnest(k.conkey, k.confkey) with ordinality p (near, far, n)
      join pg_attribute a on (a.attrelid, a.attnum) = (k.conrelid, p.near)
      join pg_attribute b on (b.attrelid, b.attnum) = (k.confrelid, p.far)) as pairs
  from pg_constraint k join relations f on f.oid = k.conrelid join relations t on t.oid = k.confrelid
  where k.contype = 'f' and k.conparentid = 0),
routines as (
  select p.proname as name, obj_description(p.oid, 'pg_proc') as comment, p.provolatile <> 'v' as reading, p.pronargdefaults as defaults,
    (select coalesce(json_agg(json_build_object('name', coalesce(p.proargnames[n], ''), 'type', format_type(a.type, -1),
        'base', ${baseSql('a.type')}, 'mode', coalesce(p.proargmodes[n], 'i')) order by n), '[]')
      from unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) with ordinality a (type, n)) as arguments,
    json_build_object('type', format_type(p.prorettype, null), 'set', p.proretset,
      'kind', case when t.typname = 'void' then 'void' when t.typtype = 'c' or t.typname = 'record' then 'row' else 'value' end,
      'relation', (select name from relations where oid = t.typrelid)) as returns
  from pg_proc p join home on p.pronamespace = home.oid join pg_type t on t.oid = p.prorettype
  where p.prokind = 'f' and not p.prosecdef and t.typname not in ('trigger', 'event_trigger', 'internal', 'language_handler')
    and has_function_privilege(p.oid, 'execute'))
select json_build_object(
  'relations', (select coalesce(json_agg(json_build_object('name', r.name, 'kind', r.kind, 'guarded', r.guarded, 'comment', r.comment,
      'columns', coalesce(c.list, '[]'), 'key', coalesce((select names from keys where indrelid = r.oid and is_primary limit 1), '[]'),
      'unique', (select coalesce(json_agg(names), '[]') from keys where indrelid = r.oid),
      'policies', (select coalesce(json_agg(polname order by polname), '[]') from pg_policy where polrelid = r.oid)) order by r.name), '[]')
    from relations r left join columns c on c.attrelid = r.oid),
  'references', (select coalesce(json_agg(refs order by refs.name), '[]') from refs),
  'routines', (select coalesce(json_agg(routines order by routines.name), '[]') from routines))::text as home`,
  values: [],
}
