// What of a home would let somebody see more than row-level security allows: a list of rules over what one query finds.
// What breaks one is not served.
import { sql, type Statement } from '../../database/statement.ts'
import { reservedCollections, systemCollections } from './system-collections.ts'

export interface LintFacts {
  login: {
    /** Superuser, or bound by no row-level security. */
    bypasses: boolean
    /** It may act as the owner of the home. */
    isOwner: boolean
    /** Other schemas in which there is something that it may read or change. */
    reaches: string[]
  }
  relations: {
    name: string
    /** As in pg_class. */
    kind: 'r' | 'p' | 'v' | 'm' | 'f'
    guarded: boolean
    forced: boolean
    /** Of a view: it asks as its caller. */
    invoker: boolean
    /** It belongs to the login: row-level security holds for it only where it is forced. */
    owned: boolean
  }[]
  /** Functions that act as their owner. */
  definers: string[]
}

export interface LintViolation {
  /** `everything`: nothing of the home is safe. */
  unsafe: { relation: string } | 'everything' | 'nothing'
  message: string
  /** It concerns what the service has made: somebody has taken a wall down. */
  isAlarming: boolean
}

/** One row with one column, `facts`. @param login the runtime's role; the home is the search path's schema */
export function lintStatement(login: string): Statement {
  return sql(
    `with home as (select oid, nspname, nspowner from pg_namespace where nspname = current_schema()),
     login as (select oid, rolsuper or rolbypassrls as bypasses from pg_roles where rolname = $1)
     select json_build_object(
       'login', (select json_build_object(
           'bypasses', login.bypasses,
           'isOwner', not login.bypasses and (pg_has_role(login.oid, home.nspowner, 'member') or exists (select from pg_class c
             where c.relnamespace = home.oid and c.relowner <> login.oid and pg_has_role(login.oid, c.relowner, 'member'))),
           'reaches', coalesce((select json_agg(n.nspname order by n.nspname) from pg_namespace n
             where n.oid <> home.oid and n.nspname !~ '^(pg_|information_schema$)' and has_schema_privilege(login.oid, n.oid, 'usage')
               and exists (select from pg_class c where c.relnamespace = n.oid and c.relkind in ('r', 'p', 'v', 'm', 'f')
                 and has_table_privilege(login.oid, c.oid, 'select, insert, update, delete'))), '[]'))
         from login, home),
       'relations', (select coalesce(json_agg(json_build_object(
           'name', c.relname, 'kind', c.relkind, 'guarded', c.relrowsecurity, 'forced', c.relforcerowsecurity,
           'owned', c.relowner = login.oid,
           'invoker', coalesce((
             select option_value::boolean from pg_options_to_table(c.reloptions) where option_name = 'security_invoker'),
             false)) order by c.relname), '[]')
         from pg_class c join home on c.relnamespace = home.oid, login where c.relkind in ('r', 'p', 'v', 'm', 'f')),
       'definers', (select coalesce(json_agg(p.proname order by p.proname), '[]')
         from pg_proc p join home on p.pronamespace = home.oid where p.prosecdef))::text as facts`,
    login,
  )
}

/** @param collections those that schemas describe, published or not */
export function lint({ login, relations, definers }: LintFacts, collections: ReadonlySet<string>): LintViolation[] {
  const errors: LintViolation[] = []
  const everything = (message: string) =>
    errors.push({ unsafe: 'everything', message: `${message}: nothing is served`, isAlarming: true })
  if (login.bypasses) everything('the login of the runtime is bound by no row-level security')
  if (login.isOwner) everything('the login of the runtime may act as the owner of the home')
  for (const schema of login.reaches)
    errors.push({
      unsafe: 'nothing',
      message: `the login of the runtime reaches the schema "${schema}"`,
      isAlarming: true,
    })
  for (const relation of relations) {
    const { name } = relation
    const isOwn = collections.has(name) || systemCollections.has(name)
    // Nothing else of the home's own is ever served.
    if (!isOwn && reservedCollections.has(name)) continue
    const reason = reasonNotToServe(relation)
    if (reason !== undefined)
      errors.push({ unsafe: { relation: name }, message: `${reason}: it is not served`, isAlarming: isOwn })
  }
  for (const name of definers)
    errors.push({
      unsafe: 'nothing',
      message: `function "${name}" acts as its owner (security definer): it is not served`,
      isAlarming: false,
    })
  return errors
}

function reasonNotToServe({
  name,
  kind,
  guarded,
  forced,
  invoker,
  owned,
}: LintFacts['relations'][number]): string | undefined {
  switch (kind) {
    case 'v':
      return invoker ? undefined : `view "${name}" reads as its owner, without security_invoker`
    case 'm':
      return `materialized view "${name}" has no row-level security`
    case 'f':
      return `foreign table "${name}" has no row-level security`
    default:
      if (!guarded) return `table "${name}" has no row-level security`
      return owned && !forced
        ? `row-level security of table "${name}" does not hold for the login of the runtime, its owner`
        : undefined
  }
}

/** True for what must not be served. */
export function isUnsafe(errors: readonly LintViolation[], relation: string): boolean {
  return errors.some(({ unsafe }) => unsafe === 'everything' || (unsafe !== 'nothing' && unsafe.relation === relation))
}
