// A description of a home from the catalogs and tables of Postgres, which is equal for two homes exactly if they are.
import pg from 'pg'

/** Tables of the service that a runtime changes by itself. */
const changing = ['function_dispatcher', 'home_migrations']

/** One query for each kind of object. Each returns lines; `$1` is the OID of the schema. */
const definitions = [
  `select format('type %s %s %s %s %s', typname, typtype, typnotnull, format_type(typbasetype, typtypmod), typdefault)
    || coalesce((select string_agg(enumlabel, ',' order by enumsortorder) from pg_enum where enumtypid = t.oid), '') as line
   from pg_type t where typnamespace = $1 and typtype in ('e', 'd')`,
  `select format('relation %s %s %s %s rls %s %s identity %s %s owner %s acl %s bound %s key %s populated %s', relname, relkind,
    relpersistence, reloptions, relrowsecurity, relforcerowsecurity, relreplident,
    (select array_agg(inhparent::regclass::text) from pg_inherits where inhrelid = c.oid), relowner::regrole, relacl,
    pg_get_expr(relpartbound, oid), case relkind when 'p' then pg_get_partkeydef(oid) end, relispopulated) as line
   from pg_class c where relnamespace = $1`,
  `select format('column %s %s %s %s', relname, row_number() over (partition by attrelid order by attnum), attname,
    concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated, attstorage, attcompression, attstattarget,
      attacl, attoptions, attcollation::regcollation, pg_get_expr(adbin, adrelid))) as line
   from pg_attribute join pg_class c on c.oid = attrelid left join pg_attrdef on adrelid = attrelid and adnum = attnum
   where relnamespace = $1 and attnum > 0 and not attisdropped`,
  `select format('constraint %s %s %s %s %s %s', conrelid::regclass, contypid::regtype, conname, pg_get_constraintdef(oid), convalidated,
    conislocal) as line
   from pg_constraint where connamespace = $1`,
  `select format('index %s %s', pg_get_indexdef(indexrelid), indisreplident) as line from pg_index join pg_class c on c.oid = indexrelid
   where relnamespace = $1`,
  `select format('trigger %s %s', pg_get_triggerdef(t.oid), tgenabled) as line from pg_trigger t join pg_class c on c.oid = tgrelid
   where relnamespace = $1 and not tgisinternal`,
  `select format('rule %s %s', pg_get_ruledef(w.oid), ev_enabled) as line from pg_rewrite w join pg_class c on c.oid = ev_class
   where relnamespace = $1`,
  `select format('policy %s', p) as line from pg_policies p where schemaname = (select nspname from pg_namespace where oid = $1)`,
  `select format('function %s owner %s acl %s', pg_get_functiondef(oid), proowner::regrole, proacl) as line
   from pg_proc where pronamespace = $1`,
  `select format('statistics %s', pg_get_statisticsobjdef(oid)) as line from pg_statistic_ext where stxnamespace = $1`,
  `select format('sequence %s %s %s', relname,
    (s.seqstart, s.seqincrement, s.seqmax, s.seqmin, s.seqcache, s.seqcycle, s.seqtypid::regtype),
    (select format('%s.%s', refobjid::regclass, refobjsubid > 0) from pg_depend where classid = 'pg_class'::regclass and objid = c.oid
      and refclassid = 'pg_class'::regclass and deptype in ('a', 'i'))) as line
   from pg_sequence s join pg_class c on c.oid = seqrelid where relnamespace = $1`,
  `select format('comment %s %s %s', i.type, i.identity, description) as line
   from pg_description d, pg_identify_object(classoid, objoid, objsubid) i
   where i.schema = (select quote_ident(nspname) from pg_namespace where oid = $1)
    or i.identity ~ (select nspname from pg_namespace where oid = $1)`,
  `select format('schema %s %s', nspowner::regrole, nspacl) as line from pg_namespace where oid = $1`,
  `select format('default rights %s %s', defaclobjtype, defaclacl) as line from pg_default_acl where defaclnamespace = $1`,
]

/** Returns sorted lines: one for each object, row and position of a sequence. @param url of a superuser */
export async function describeHome(url: string, schema: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const query = async <Row>(text: string, values: unknown[] = []) =>
    (await client.query({ text, values })).rows as unknown as Row[]
  try {
    await client.query('set search_path = pg_catalog; set datestyle = iso; set extra_float_digits = 1')
    const [found] = await query<{ oid: number }>('select oid from pg_namespace where nspname = $1', [schema])
    if (found === undefined) throw new Error(`There is no schema ${schema}.`)
    const lines: string[] = []
    for (const text of definitions)
      lines.push(...(await query<{ line: string }>(text, [found.oid])).map(({ line }) => line))
    const relations = await query<{ name: string; kind: string }>(
      `select quote_ident(relname) as name, relkind as kind from pg_class
       where relnamespace = $1 and relkind in ('r', 'm', 'S') and relname <> all ($2)`,
      [found.oid, changing],
    )
    for (const { name, kind } of relations) {
      const columns = kind === 'S' ? 'last_value || is_called::text' : 'r::text'
      const rows = await query<{ row: string }>(`select ${columns} as row from only "${schema}".${name} r`)
      lines.push(...rows.map(({ row }) => `row of ${name}: ${row}`))
    }
    return lines.sort()
  } finally {
    await client.end()
  }
}
