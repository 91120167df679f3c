// Reads a home from Postgres' catalogs: every table, view, reference and function that may be served, as one JSON document.
// The partitions of a table are parts of it, and not served themselves.
// `publish.ts` decides which of them are served, and under which names.
import type { Statement } from '../../database/statement.ts'
import type { Representation } from './catalog.ts'
import { homeSizeSql, isWithinSql } from './home-bounds.ts'

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
  /** The functions of the casts of the column's domain. Older published catalogs do not have them. */
  casts?: Representation | null
  /** Older published catalogs do not have it. */
  comment?: string | null
}

export interface HomeRelation {
  name: string
  /** The name in the home, if it differs. */
  stored?: string
  kind: 'table' | 'view'
  /** Whether row-level security is enabled; for a view: whether it reads with its caller's rights. */
  guarded: boolean
  comment: string | null
  columns: HomeColumn[]
  key: string[]
  unique: string[][]
  /** Names of the row-level security policies. Older published catalogs do not have them. */
  policies?: string[]
  /** The columns of a view that are unchanged columns of a table. */
  origins?: Origin[]
  /** The possible changes, as `pg_relation_is_updatable` returns them. Older published catalogs do not have them. */
  changes?: number
}

export interface Origin {
  column: string
  table: string
  tableColumn: string
}

export interface HomeReference {
  name: string
  from: string
  to: string
  pairs: [string, string][]
  /** Whether at most one row references each row. Older published catalogs do not have it. */
  isUnique?: boolean
}

export interface HomeRoutine {
  name: string
  /** The name in the home, if it differs. */
  stored?: string
  comment: string | null
  reading: boolean
  /** All parameters, in order. `mode` is that of pg_proc. */
  arguments: (HomeType & {
    name: string
    mode: 'i' | 'o' | 'b' | 'v' | 't'
    /** The relation of whose rows it is one. Older published catalogs do not have it. */
    relation?: string | null
  })[]
  /** The number of input parameters, counted from the last one, that have defaults. */
  defaults: number
  returns: HomeType & {
    kind: 'void' | 'value' | 'row'
    set: boolean
    relation: string | null
    /** Whether it returns at most one row (`rows 1`). Older published catalogs do not have it. */
    single?: boolean
    /** The name of the domain, if it is that of a media type. Older published catalogs do not have it. */
    media?: string | null
  }
}

/** An aggregate that makes a media type of rows. */
export interface HomeHandler {
  name: string
  /** The relation of the rows; null for rows of any relation. */
  relation: string | null
  media: string
  base: string
}

export interface HomeDescription {
  relations: HomeRelation[]
  references: HomeReference[]
  routines: HomeRoutine[]
  /** The names of other functions. Older published catalogs do not have them. */
  unserved?: string[]
  /** Whether the code of the home may read or make these settings. Older published catalogs do not have it. */
  mentions?: { request: boolean; response: boolean }
  /** Older published catalogs do not have them. */
  handlers?: HomeHandler[]
  /** The names of the home's own types and of their arrays. Older published catalogs do not have them. */
  types?: string[]
}

/** The maximum number of types that casts may name. */
const maxTypes = 1_000

/**
 * Returns SQL for the OID of a type behind all domains.
 * @param type SQL of the type's OID
 */
const behindSql = (type: string) => `(with recursive behind as (
      select t.oid, t.typtype, t.typbasetype from pg_type t where t.oid = ${type}
      union all select t.oid, t.typtype, t.typbasetype from behind b join pg_type t on t.oid = b.typbasetype where b.typtype = 'd')
    select oid from behind where typtype <> 'd')`

/** Returns SQL for the plain name of a type behind all domains. */
const baseSql = (type: string) => `format_type(${behindSql(type)}, null)`

/** The maximum bytes of the stored queries of all views together, which are compressed, and of each query. */
const maxStoredQueries = 2 * 1024 * 1024
const maxQuery = 1024 * 1024

/**
 * SQL of a WITH's part `views`: the views of `relations` with their queries. Only the brackets and the origins of columns are
 * left of each query. Views beyond the bounds are omitted, in the order of their names.
 */
const viewQueriesSql = `views as (
  select oid, regexp_replace(regexp_replace(query, '\\\\.', '', 'g'),
    ':(?!targetList |resno |resorigtbl |resorigcol )[a-zA-Z_]\\w*[^(){}:]*', '', 'g') as query
  from (select r.oid, w.ev_action::text as query, sum(pg_column_size(w.ev_action)) over (order by r.name) as stored
    from relations r join pg_rewrite w on w.ev_class = r.oid and w.ev_type = '1' where r.kind = 'view') q
  where stored <= ${maxStoredQueries} and octet_length(query) <= ${maxQuery})`

/**
 * Returns one row with the column `home`, a `HomeAsRead` as JSON, and the sizes for `requireBounded`. Beyond a bound `home`
 * is null. The home is the search path's schema.
 */
export const introspection: Statement = {
  text: `
with home as (select oid from pg_namespace where nspname = current_schema()),
relations as (
  select c.oid, c.relname as name, case when c.relkind in ('v', 'm') then 'view' else 'table' end as kind,
    case when c.relkind = 'v' then coalesce((
        select option_value::boolean from pg_options_to_table(c.reloptions) where option_name = 'security_invoker'), false)
      else c.relrowsecurity end as guarded,
    obj_description(c.oid, 'pg_class') as comment,
    c.relkind = 'v' and pg_relation_is_updatable(c.oid, false) = 28
      and (select count(*) from pg_rewrite where ev_class = c.oid) = 1 as plain
  from pg_class c join home on c.relnamespace = home.oid
  where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition),
casts as (
  select d.oid, json_object_agg(case when k.castsource = d.oid then 'toJson' when k.castsource = 'json'::regtype then 'fromJson'
      else 'fromText' end, p.proname) as functions
  from pg_type d join home on d.typnamespace = home.oid
    join pg_cast k on (k.castsource = d.oid and k.casttarget = 'json'::regtype)
      or (k.casttarget = d.oid and k.castsource in ('json'::regtype, 'text'::regtype))
    join pg_proc p on p.oid = k.castfunc and p.pronamespace = home.oid
  where d.typtype = 'd' and not p.prosecdef and has_function_privilege(p.oid, 'execute') group by 1),
columns as (
  select a.attrelid, json_agg(json_build_object(
      'name', a.attname, 'number', a.attnum,
      'type', format_type(a.atttypid, a.atttypmod), 'base', ${baseSql('a.atttypid')}, 'nullable', not a.attnotnull,
      'casts', (select functions from casts where oid = a.atttypid), 'comment', col_description(a.attrelid, a.attnum),
      'default', case when a.attidentity = 'd' then format('nextval(%L)', pg_get_serial_sequence(a.attrelid::regclass::text, a.attname))
        when a.attgenerated = '' then coalesce(pg_get_expr(d.adbin, d.adrelid),
          (select pg_get_expr(t.typdefaultbin, 0) from pg_type t where t.oid = a.atttypid and t.typtype = 'd')) end,
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
        'base', ${baseSql('a.type')},
        'relation', (select r.name from pg_type y join relations r on r.oid = y.typrelid where y.oid = a.type),
        'mode', coalesce(p.proargmodes[n], 'i')) order by n), '[]')
      from unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) with ordinality a (type, n)) as arguments,
    json_build_object('type', format_type(p.prorettype, null), 'base', format_type(t.oid, null), 'set', p.proretset,
      'single', not p.proretset or p.prorows = 1,
      'media', (select d.typname from pg_type d where d.oid = p.prorettype and d.typtype = 'd' and d.typname like '%/%'),
      'kind', case when t.typname = 'void' then 'void' when t.typtype = 'c' or t.typname = 'record' then 'row' else 'value' end,
      'relation', (select name from relations where oid = t.typrelid)) as returns
  from pg_proc p join home on p.pronamespace = home.oid join pg_type t on t.oid = ${behindSql('p.prorettype')}
  where p.prokind = 'f' and not p.prosecdef and t.typname not in ('trigger', 'event_trigger', 'internal', 'language_handler')
    and has_function_privilege(p.oid, 'execute')),
${viewQueriesSql},
handlers as (
  select p.proname as name, r.name as relation, d.typname as media, ${baseSql('d.oid')} as base
  from pg_proc p join home on p.pronamespace = home.oid join pg_type d on d.oid = p.prorettype
    join pg_type row on row.oid = p.proargtypes[0] left join relations r on r.oid = row.typrelid
  where p.prokind = 'a' and p.pronargs = 1 and d.typtype = 'd' and d.typname like '%/%' and has_function_privilege(p.oid, 'execute')
    and (r.oid is not null or row.typname = 'anyelement')
    and not exists (select from pg_aggregate g join pg_proc f on f.oid in (g.aggtransfn, g.aggfinalfn)
      where g.aggfnoid = p.oid and f.prosecdef))
select size.*, case when ${isWithinSql} then json_build_object(
  'relations', (select coalesce(json_agg(json_build_object('name', r.name, 'oid', r.oid::bigint, 'plain', r.plain, 'query', v.query,
      'kind', r.kind, 'guarded', r.guarded, 'comment', r.comment,
      'columns', coalesce(c.list, '[]'), 'key', coalesce((select names from keys where indrelid = r.oid and is_primary limit 1), '[]'),
      'unique', (select coalesce(json_agg(names), '[]') from keys where indrelid = r.oid),
      'changes', pg_relation_is_updatable(r.oid, true),
      'policies', (select coalesce(json_agg(polname order by polname), '[]') from pg_policy where polrelid = r.oid)) order by r.name), '[]')
    from relations r left join columns c on c.attrelid = r.oid left join views v on v.oid = r.oid),
  'references', (select coalesce(json_agg(refs order by refs.name), '[]') from refs),
  'routines', (select coalesce(json_agg(routines order by routines.name), '[]') from routines),
  'handlers', (select coalesce(json_agg(handlers order by handlers.name), '[]') from handlers),
  'types', (select coalesce(json_agg(name), '[]') from (select t.typname as name from pg_type t join home on t.typnamespace = home.oid
      left join pg_type e on e.oid = t.typelem and e.typarray = t.oid left join pg_class c on c.oid = coalesce(e.typrelid, t.typrelid)
    where t.typisdefined and coalesce(e.typtype, t.typtype) in ('b', 'c', 'd', 'e', 'm', 'r') and coalesce(c.relkind, 'c') = 'c'
      and not exists (select from pg_type p where p.typname = t.typname and p.typnamespace = 'pg_catalog'::regnamespace)
    order by 1 limit ${maxTypes}) own),
  'unserved', (select coalesce(json_agg(distinct p.proname), '[]') from pg_proc p join home on p.pronamespace = home.oid
    where p.prokind = 'f' and not exists (select from routines where name = p.proname)),
  'mentions', (select json_build_object('request', coalesce(bool_or(code ~ 'request\\.(?!jwt)'), false),
      'response', coalesce(bool_or(code ~ 'response\\.'), false)) from (
    select p.prosrc || coalesce(pg_get_function_sqlbody(p.oid), '') as code from pg_proc p join home on p.pronamespace = home.oid
    union all select concat(pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)) from pg_policy
      join relations r on r.oid = polrelid
    union all select pg_get_viewdef(c.oid) from pg_class c join home on c.relnamespace = home.oid where c.relkind = 'v'
    union all select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d join relations r on r.oid = d.adrelid
    union all select pg_get_constraintdef(k.oid) from pg_constraint k join home on k.connamespace = home.oid where k.contype = 'c'
    union all select pg_get_triggerdef(g.oid) from pg_trigger g join relations r on r.oid = g.tgrelid where not g.tgisinternal
  ) as codes))::text end as home
from (${homeSizeSql}) as size`,
  values: [],
}
