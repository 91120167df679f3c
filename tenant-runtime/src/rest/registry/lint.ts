// Finds objects of a home that would let callers see more than row-level security allows, by a list of rules over the
// result of one query. Such objects are not served.
import { sql, type Statement } from '../../database/statement.ts'
import { reservedCollections, systemCollections } from './system-collections.ts'

export interface LintFacts {
  login: {
    /** Whether the login is a superuser or bypasses row-level security. */
    bypasses: boolean
    /** Whether the login may act as the owner of the home. */
    isOwner: boolean
    /** Other schemas with objects that the login may read or change. */
    reaches: string[]
  }
  relations: {
    name: string
    /** The kind of pg_class. */
    kind: 'r' | 'p' | 'v' | 'm' | 'f'
    guarded: boolean
    forced: boolean
    /** Whether a view reads with its caller's rights. */
    invoker: boolean
    /** Whether the login owns it, so that row-level security only applies when it is forced. */
    owned: boolean
  }[]
  /** Functions that run with their owner's rights. */
  definers: string[]
}

export interface LintViolation {
  /** `everything` means that nothing of the home is safe. */
  unsafe: { relation: string } | 'everything' | 'nothing'
  message: string
  /** Whether it concerns an object of the service, which a tenant has changed. */
  isAlarming: boolean
}

/**
 * Returns one row with one column, `facts`. The home is the search path's schema.
 * @param login the runtime's role
 */
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
         from pg_class c join home on c.relnamespace = home.oid, login
         where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition),
       'definers', (select coalesce(json_agg(p.proname order by p.proname), '[]')
         from pg_proc p join home on p.pronamespace = home.oid where p.prosecdef))::text as facts`,
    login,
  )
}

/**
 * Applies the rules.
 * @param collections the collections that schemas describe, published or not
 */
export function lint({ login, relations, definers }: LintFacts, collections: ReadonlySet<string>): LintViolation[] {
  const violations: LintViolation[] = []
  const everything = (message: string) =>
    violations.push({ unsafe: 'everything', message: `${message}, so nothing is served.`, isAlarming: true })
  if (login.bypasses) everything('Row-level security does not apply to the login of the runtime')
  if (login.isOwner) everything('The login of the runtime may act as the owner of the home')
  for (const schema of login.reaches)
    violations.push({
      unsafe: 'nothing',
      message: `The login of the runtime has access to the schema "${schema}".`,
      isAlarming: true,
    })
  for (const relation of relations) {
    const { name } = relation
    const isOwn = collections.has(name) || systemCollections.has(name)
    // No other object of the service is ever served.
    if (!isOwn && reservedCollections.has(name)) continue
    const reason = reasonNotToServe(relation)
    if (reason !== undefined)
      violations.push({ unsafe: { relation: name }, message: `${reason}, so it is not served.`, isAlarming: isOwn })
  }
  for (const name of definers)
    violations.push({
      unsafe: 'nothing',
      message: `The function "${name}" runs with its owner's rights (security definer), so it is not served.`,
      isAlarming: false,
    })
  return violations
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
      return invoker ? undefined : `The view "${name}" reads with its owner's rights, without security_invoker`
    case 'm':
      return `The materialized view "${name}" has no row-level security`
    case 'f':
      return `The foreign table "${name}" has no row-level security`
    default:
      if (!guarded) return `The table "${name}" has no row-level security`
      return owned && !forced
        ? `Row-level security of the table "${name}" does not apply to the login of the runtime, its owner`
        : undefined
  }
}

/** Whether the relation must not be served. */
export function isUnsafe(violations: readonly LintViolation[], relation: string): boolean {
  return violations.some(
    ({ unsafe }) => unsafe === 'everything' || (unsafe !== 'nothing' && unsafe.relation === relation),
  )
}
