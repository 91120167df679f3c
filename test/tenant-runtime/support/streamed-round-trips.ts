// Streamed round trips whose produced rows are counted, and readers that read all, some or none of them.
import type { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import { Connections, defaultConnectionLimits } from '#tenant-runtime/database/connections.ts'
import { ScopedDatabase } from '#tenant-runtime/database/scoped-database.ts'
import { sql, type Statement } from '#tenant-runtime/database/statement.ts'
import type { RlsContext } from '#tenant-runtime/tenancy/rls-context.ts'
import { createHome } from '#test/support/home.ts'
import { query, startPostgres } from '#test/support/postgres.ts'

export const user: RlsContext = { role: 'authenticated', userId: 'u1', claims: '{"sub":"u1"}' }
export const service: RlsContext = { role: 'service', reason: 'test' }
export const array = { begin: '[', between: ',', end: ']' }
export const never = new AbortController().signal

export const settings =
  "select current_setting('app.tenant_id', true) as tenant, current_setting('app.role', true) as role," +
  " current_setting('app.user_id', true) as user_id, current_setting('request.jwt.claims', true) as claims"

/** Starts a home and returns functions that run streamed round trips in it. */
export async function openRoundTrips(t: Test) {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const home = await createHome(postgres)
  const login = { tenantId: home.tenantId, url: home.url }
  await query(home.adminUrl, `create sequence produced; grant usage on sequence produced to ${home.tenantId}`)

  const open = (t: Test, limits: Partial<typeof defaultConnectionLimits> = {}) => {
    const connections = new Connections({ ...defaultConnectionLimits, ...limits })
    const database = new ScopedDatabase(connections, { tenantId: home.tenantId, url: home.url, ddlUrl: home.ddl_url })
    t.teardown(() => connections.close())
    const stream = (
      last: Statement,
      {
        before = [],
        context = service,
        signal = never,
      }: { before?: Statement[]; context?: RlsContext; signal?: AbortSignal } = {},
    ) => database.stream(context, before, last, array, signal)
    return { connections, database, stream }
  }
  const one = { total: 1, perTenant: 1 }
  const numbers = (count: number) => sql('select n::text from generate_series(1, $1::int) n', count)
  /** Returns a statement whose rows advance a sequence, which no rollback resets. */
  const producing = (count: number, length: number) =>
    sql(
      "select to_json(nextval('produced') || repeat('x', $2::int))::text from generate_series(1, $1::int)",
      count,
      length,
    )
  const produced = async () =>
    Number(
      (await query(home.adminUrl, 'select case when is_called then last_value else 0 end as n from produced'))[0]?.[
        'n'
      ],
    )
  const reset = () => query(home.adminUrl, "select setval('produced', 1, false)")
  const sessions = () =>
    query(postgres.url('postgres'), 'select pid, wait_event, state from pg_stat_activity where usename = $1', [
      home.tenantId,
    ])
  const until = async (what: string, isSo: () => Promise<boolean>) => {
    const deadline = Date.now() + 20_000
    while (!(await isSo())) {
      if (Date.now() > deadline) throw new Error(`not ${what} in 20 s`)
      await wait(5)
    }
  }
  const noSessions = () => until('without sessions', async () => (await sessions()).length === 0)
  const read = async (body: Readable) => {
    let text = ''
    for await (const chunk of body as AsyncIterable<string>) text += chunk
    return text
  }
  /** Reads at least this many characters, and then stops reading. */
  const readSome = async (body: Readable, length: number) => {
    let text = ''
    while (text.length < length) {
      const chunk = body.read() as string | null
      if (chunk === null) await new Promise((resolve) => body.once('readable', resolve))
      else text += chunk
    }
    return text
  }
  const failure = async (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => undefined,
      (error: unknown) => error,
    )
  const onSameConnection = async (connections: Connections) => {
    const connection = await connections.acquire(login)
    const { rows } = await connection.client.query(settings)
    connections.release(login, connection, true)
    return Object.values((rows as Record<string, string | null>[])[0] ?? {}).filter(
      (value) => value !== null && value !== '',
    )
  }
  return {
    postgres,
    home,
    login,
    open,
    one,
    numbers,
    producing,
    produced,
    reset,
    sessions,
    until,
    noSessions,
    read,
    readSome,
    failure,
    onSameConnection,
  }
}
