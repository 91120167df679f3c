// Runs an example: its SQL as the tenant's own login, a reload, its call as anybody with the publishable key. What it made
// in the home is gone afterwards.
import { runInThisContext } from 'node:vm'
import ts from 'typescript'
import { query } from '#test/support/postgres.ts'
import type { TestTenant } from '#test/support/runtime.ts'
import type { CompleteExample } from './read-examples.ts'

/** What the client gives for a call: `data`, `error`, `count`, `status`, `statusText`. */
export type Response = Record<string, unknown>

/**
 * One response for each `await` of the call.
 * @throws Error when SQL, reload or call fail
 */
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

/** The same response, told in the same words: `given` is left with what `documented` says. */
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

/** What is documented, in full. Not all examples tell of everything that a response has; some tell of its data alone. */
function responseOf(documented: unknown): Response {
  const { statusText, ...reported } = isRecord(documented) ? documented : { data: documented }
  // HTTP/2 has no such text, and most of the examples were written down where there was none.
  return {
    data: null,
    error: null,
    count: null,
    ...reported,
    ...(statusText === '' || statusText === undefined ? {} : { statusText }),
  }
}

/** Errors have the platform's own fields beside those of PostgREST. */
function partOf(given: unknown, documented: Record<string, unknown>): unknown {
  return isRecord(given) ? Object.fromEntries(Object.keys(documented).map((key) => [key, given[key]])) : given
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

interface HomeObject {
  oid: string
  kind: 'table' | 'view' | 'function'
  /** As SQL. */
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

/** Everybody may do everything: the examples say nothing of policies. */
function publishable({ kind, name }: HomeObject): string {
  if (kind === 'view') return `alter view ${name} set (security_invoker = true);`
  if (kind === 'function') return ''
  return `alter table ${name} enable row level security; create policy everyone on ${name} using (true) with check (true);`
}

async function reload(tenant: TestTenant): Promise<void> {
  const { status, text } = await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
  if (status !== 200) throw new Error(`the reload was answered with ${status}: ${text}`)
}

async function responsesOf(tenant: TestTenant, call: string): Promise<Response[]> {
  const responses: Response[] = []
  // What is awaited is kept on its way into the example's variables, which alternatives declare twice.
  const stored = call
    .replaceAll(/\bconst (?=\{)/g, 'var ')
    .replaceAll('= await ', '= responses[responses.length] = await ')
  const body = ts.transpile(`(async (supabase, responses) => {\n${stored}\n})`, { target: ts.ScriptTarget.ESNext })
  const example: unknown = runInThisContext(body)
  if (typeof example !== 'function') throw new Error(`the example is no call: ${call}`)
  await Reflect.apply(example, undefined, [tenant.client(undefined), responses])
  if (responses.length === 0) throw new Error(`the example awaits nothing: ${call}`)
  return responses
}
