// Runs an example: its SQL as the tenant's own login, a reload, and its call with the publishable key. Afterwards it
// drops what the SQL created in the home.
import { runInThisContext } from 'node:vm'
import ts from 'typescript'
import { query } from '#test/support/postgres.ts'
import type { TestTenant } from '#test/support/runtime.ts'
import type { CompleteExample } from './read-examples.ts'

/** The result of a client's call: `data`, `error`, `count`, `status`, `statusText`. */
export type Response = Record<string, unknown>

/** Returns one response for each `await` of the call. @throws Error when SQL, reload or call fail */
export async function runExample(tenant: TestTenant, { sql, call }: CompleteExample): Promise<Response[]> {
  const before = new Set((await objectsOf(tenant)).map(({ oid }) => oid))
  const made = async () => (await objectsOf(tenant)).filter(({ oid }) => !before.has(oid))
  try {
    await query(tenant.home.adminUrl, sql)
    await query(tenant.home.adminUrl, (await made()).map(publishable).join('\n'))
    await reload(tenant)
    return await responsesOf(tenant, call)
  } finally {
    await query(
      tenant.home.adminUrl,
      (await made()).map(({ kind, name }) => `drop ${kind} if exists ${name} cascade;`).join('\n'),
    )
  }
}

/** Returns both responses in a comparable form: `got` has only the members that `documented` has. */
export function compared(documented: unknown, given: Response): { wanted: Response; got: Response } {
  const wanted = responseOf(documented)
  const { error } = wanted
  return {
    wanted,
    got: Object.fromEntries(
      Object.keys(wanted).map((key) => [
        key,
        key === 'error' && isRecord(error) ? partOf(given[key], error) : given[key],
      ]),
    ),
  }
}

/** Returns the documented response in full. Some examples document only a part of it, or only its data. */
function responseOf(documented: unknown): Response {
  const { statusText, ...members } = isRecord(documented) ? documented : { data: documented }
  // HTTP/2 has no status text, and most of the documented responses have none.
  return {
    data: null,
    error: null,
    count: null,
    ...members,
    ...(statusText === '' || statusText === undefined ? {} : { statusText }),
  }
}

/** Selects the documented members of an error, because ours have further fields. */
function partOf(given: unknown, documented: Record<string, unknown>): unknown {
  return isRecord(given) ? Object.fromEntries(Object.keys(documented).map((key) => [key, given[key]])) : given
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

interface HomeObject {
  oid: string
  kind: 'table' | 'view' | 'function'
  /** The name, quoted for SQL. */
  name: string
}

async function objectsOf({ home }: TestTenant): Promise<HomeObject[]> {
  const rows = await query(
    home.adminUrl,
    `
    select oid::text, case relkind when 'v' then 'view' else 'table' end as kind, oid::regclass::text as name
    from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'v')
    union all select oid::text, 'function', oid::regprocedure::text from pg_proc where pronamespace = current_schema()::regnamespace`,
  )
  return rows as unknown as HomeObject[]
}

/** Allows everything for all callers, because the examples have no policies. */
function publishable({ kind, name }: HomeObject): string {
  if (kind === 'view') return `alter view ${name} set (security_invoker = true);`
  if (kind === 'function') return ''
  return `alter table ${name} enable row level security; create policy allow_all on ${name} using (true) with check (true);`
}

async function reload(tenant: TestTenant): Promise<void> {
  const { status, text } = await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
  if (status !== 200) throw new Error(`the reload returned ${status}: ${text}`)
}

async function responsesOf(tenant: TestTenant, call: string): Promise<Response[]> {
  const responses: Response[] = []
  // Stores each awaited response on its way into the example's variables, because alternatives declare these twice.
  const stored = call
    .replaceAll(/\bconst (?=\{)/g, 'var ')
    .replaceAll('= await ', '= responses[responses.length] = await ')
  const body = ts.transpile(`(async (supabase, responses) => {\n${stored}\n})`, { target: ts.ScriptTarget.ESNext })
  const example: unknown = runInThisContext(body)
  if (typeof example !== 'function') throw new Error(`the example is not a call: ${call}`)
  await Reflect.apply(example, undefined, [tenant.client(undefined), responses])
  if (responses.length === 0) throw new Error(`the example awaits nothing: ${call}`)
  return responses
}
