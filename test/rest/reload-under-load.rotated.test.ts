// Schemas change while clients read and write: no request fails, no reload is lost, and related changes are published
// together. A reload that cannot get its locks, or whose session is killed, changes nothing and blocks no client.
import pg from 'pg'
import t, { type Test } from 'tap'
import { effort } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { addSchema, alter, publish, reload, reloaded, rest, same } from './support/schemas.ts'

const workers = 16
const text = { name: 'text', type: 'string' }
const schemas = [
  { name: 'notes', fields: [text], rls_policy: { type: 'ownership', owner_field: 'owner' } },
  { name: 'posts', fields: [text], rls_policy: { type: 'public_read', owner_field: 'owner' } },
]

interface Load {
  /** Responses with an unexpected status or content. */
  readonly wrong: string[]
  /** Returns how many requests for notes began and ended since the last call. */
  takeFinished(): number
  stop(): Promise<void>
}

/** Starts workers, each of which is a separate user and knows its own records. */
function startLoad(tenant: TestTenant, workers: number): Load {
  const wrong: string[] = []
  let isOver = false
  let epoch = 0
  let inEpoch = 0
  const work = async (user: string) => {
    const mine = new Map<string, string>()
    const expect = async (right: number, method: string, path: string, body?: object) => {
      const begun = epoch
      const response = await tenant.request(method, `${rest}/${path}`, {
        as: user,
        ...(body === undefined ? {} : { body }),
      })
      if (begun === epoch && path.startsWith('notes')) inEpoch++
      if (response.status !== right) wrong.push(`${method} ${path} of ${user}: ${response.status} ${response.text}`)
      return response
    }
    for (let n = 0; !isOver; n++) {
      const made = await expect(201, 'POST', 'notes', { text: `${user} ${n}` })
      if (made.status !== 201) continue
      const id = String(made.json()['id'])
      mine.set(id, `${user} ${n}`)
      await expect(200, 'PATCH', `notes/${id}`, { text: `${user} ${n} again` })
      mine.set(id, `${user} ${n} again`)
      await expect(201, 'POST', 'posts', [{ text: user }, { text: user }])
      await expect(200, 'GET', 'posts?select=text,owner&limit=20')
      const [first] = mine.keys()
      if (mine.size > 5 && first !== undefined) {
        await expect(200, 'DELETE', `notes/${first}`)
        mine.delete(first)
      }
      const list = await expect(200, 'GET', 'notes?select=id,text,owner')
      const seen =
        list.status === 200
          ? list.list().map((row) => `${String(row['id'])} ${String(row['text'])} ${String(row['owner'])}`)
          : []
      const own = [...mine].map(([id, text]) => `${id} ${text} ${user}`)
      if (JSON.stringify(seen.sort()) !== JSON.stringify(own.sort()))
        wrong.push(`${user} sees ${JSON.stringify(seen)}, not ${JSON.stringify(own)}`)
    }
  }
  const all = Promise.all(Array.from({ length: workers }, (_, n) => work(`user${n}`)))
  return {
    wrong,
    takeFinished() {
      const before = inEpoch
      epoch++
      inEpoch = 0
      return before
    },
    async stop() {
      isOver = true
      await all
    },
  }
}

const until = async (what: string, holds: () => Promise<boolean>) => {
  for (const deadline = Date.now() + 30_000; !(await holds());)
    if (Date.now() > deadline) throw new Error(`never: ${what}`)
}

t.test('Reloads under load', async (t) => {
  // A session that waits for a lock holds a connection, but the wait of other requests is not an error.
  const runtime = await startRuntime(t, { connections: { perTenant: 10, waitMilliseconds: 60_000 } })
  const developers = 6

  t.test('Every request succeeds and has the requested result during reloads', async (t) => {
    const tenant = await runtime.addTenant()
    const shapes = Array.from({ length: developers }, (_, n) => ({
      name: `shape${n}`,
      fields: [text],
      rls_policy: { type: 'authenticated' },
    }))
    const rules = Array.from({ length: developers }, (_, n) => ({
      name: `rule${n}`,
      fields: [text],
      rls_policy: { type: 'ownership', owner_field: 'owner' },
    }))
    await publish(tenant, ...schemas, ...shapes, ...rules)
    const load = startLoad(tenant, workers)
    const rounds = effort({ small: 3, full: 40 })
    let reloads = 0
    const develop = async (n: number) => {
      const fields: object[] = [text]
      await tenant.request('POST', `${rest}/rule${n}`, { as: 'ada', body: { text: 'of ada' } })
      for (let round = 0; round < rounds; round++) {
        const field = `f${round}`
        fields.push({ name: field, type: 'number' })
        await alter(tenant, `shape${n}`, { fields })
        const isPublic = round % 2 === 0
        await alter(tenant, `rule${n}`, {
          rls_policy: { type: isPublic ? 'public_read' : 'ownership', owner_field: 'owner' },
        })
        const pair = ['a', 'b'].map((half) => ({
          name: `pair${n}_${round}${half}`,
          fields: [text],
          rls_policy: { type: 'authenticated' },
        }))
        t.equal((await addSchema(tenant, pair)).status, 201)
        // Once one of the two collections is served, the other is too.
        let isPublished = false
        const watch = (async () => {
          while (!isPublished) {
            const [first, second] = [
              await tenant.request('GET', `${rest}/pair${n}_${round}a`, { as: 'ada' }),
              await tenant.request('GET', `${rest}/pair${n}_${round}b`, { as: 'ada' }),
            ]
            if (![200, 404].includes(first.status) || (first.status === 200 && second.status !== 200))
              load.wrong.push(`pair${n}_${round}: ${first.status}, ${second.status}`)
            isPublished = first.status === 200
          }
        })()
        const responses = await Promise.all(Array.from({ length: 1 + (round % 3) }, () => reload(tenant)))
        reloads += responses.length
        for (const response of responses) t.equal(response.status, 200, response.text)
        const made = await tenant.request('POST', `${rest}/shape${n}`, {
          as: 'ada',
          body: { text: 'x', [field]: round },
        })
        t.match(
          [made.status, made.status === 201 ? made.json() : made.text],
          [201, { [field]: round }],
          'a completed reload is in force',
        )
        const seen = await tenant.request('GET', `${rest}/rule${n}?select=text`, { as: 'ben' })
        t.same(seen.list(), isPublic ? [{ text: 'of ada' }] : [], 'and so is its policy')
        await watch
      }
    }
    await Promise.all(Array.from({ length: developers }, (_, n) => develop(n)))
    await load.stop()
    t.same(load.wrong.slice(0, 5), [], 'no request failed')
    t.ok(load.takeFinished() > 100 && reloads >= developers * rounds, `${reloads} reloads`)
    const made = await tenant.rows('select count(*)::int as n from applied_schemas where published')
    t.same(made, [{ n: schemas.length + 2 * developers + 2 * developers * rounds }])
  })

  /**
   * Runs a reload that adds a field and a collection and waits for the lock on notes, with something else in the
   * meantime.
   */
  const blocked = async (
    t: Test,
    meanwhile: (superuser: pg.Client, tenant: TestTenant, load: Load) => Promise<void>,
    status: number,
    code: string,
  ) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, ...schemas)
    const load = startLoad(tenant, workers)
    const holder = new pg.Client({ connectionString: tenant.home.adminUrl })
    const superuser = new pg.Client({ connectionString: runtime.postgres.url('homes') })
    await Promise.all([holder.connect(), superuser.connect()])
    // Holds the table as a long report does.
    await holder.query('begin; select * from notes')
    await alter(tenant, 'notes', { fields: [text, { name: 'more', type: 'number' }] })
    t.equal(
      (await addSchema(tenant, { name: 'added', fields: [text], rls_policy: { type: 'authenticated' } })).status,
      201,
    )
    const before = await tenant.rows(
      `select (select json_agg(a order by name)::text from applied_schemas a) as applied,
        (select version::text from published_catalog) as version`,
    )
    let hasResponded = false
    const pending = reload(tenant).finally(() => (hasResponded = true))
    await until(
      'the reload waits',
      async () =>
        hasResponded ||
        (
          await superuser.query(
            "select 1 from pg_locks where relation = $1::regclass and not granted and mode = 'AccessExclusiveLock'",
            [`${tenant.home.schema}.notes`],
          )
        ).rowCount === 1,
    )
    load.takeFinished()
    await meanwhile(superuser, tenant, load)
    const response = await pending
    const result = load.takeFinished()
    same(t, response, status, code)
    t.equal(response.headers['retry-after'], '1')
    same(t, await tenant.request('POST', `${rest}/notes`, { as: 'ada', body: { text: 'x', more: 1 } }), 400, 'PGRST204')
    same(t, await tenant.request('GET', `${rest}/added`, { as: 'ada' }), 404, 'PGRST205')
    t.same(
      await tenant.rows(
        `select (select json_agg(a order by name)::text from applied_schemas a) as applied,
          (select version::text from published_catalog) as version`,
      ),
      before,
      'nothing was changed',
    )
    await holder.query('commit')
    await reloaded(tenant)
    t.equal(
      (await tenant.request('POST', `${rest}/notes`, { as: 'ada', body: { text: 'x', more: 1 } })).status,
      201,
      'the repeated reload succeeds',
    )
    t.equal((await tenant.request('GET', `${rest}/added`, { as: 'ada' })).status, 200)
    await load.stop()
    t.same(load.wrong.slice(0, 5), [], 'no request failed')
    await Promise.all([holder.end(), superuser.end()])
    return result
  }

  t.test(
    'A reload of a table in use fails after a short wait, and other requests proceed in the meantime',
    async (t) => {
      // A single long wait would allow each worker at most one request, just before the end of the reload.
      const response = await blocked(t, async () => undefined, 503, 'DATABASE_BUSY')
      t.ok(response > 3 * workers, `${response}`)
    },
  )

  t.test('A reload whose session is killed has changed nothing', async (t) => {
    await blocked(
      t,
      async (superuser, tenant) => {
        await until(
          'one was ended',
          async () =>
            (
              await superuser.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [
                `${tenant.id}_ddl`,
              ])
            ).rowCount === 1,
        )
      },
      503,
      'DATABASE_UNAVAILABLE',
    )
  })

  t.test('A reload waits for those of other runtimes, for a limited time', async (t) => {
    const tenant = await runtime.addTenant()
    await publish(tenant, ...schemas)
    const other = new pg.Client({ connectionString: runtime.postgres.url('homes') })
    await other.connect()
    await other.query(`begin; lock table ${tenant.home.schema}.applied_schemas in share row exclusive mode`)
    same(t, await reload(tenant), 503, 'DATABASE_BUSY')
    const waiting = Promise.all(Array.from({ length: 10 }, () => reload(tenant)))
    await until(
      'they wait',
      async () =>
        (
          await query(
            runtime.postgres.url('homes'),
            'select 1 from pg_locks where relation = $1::regclass and not granted',
            [`${tenant.home.schema}.applied_schemas`],
          )
        ).length > 0,
    )
    await other.query('commit')
    t.same(
      (await waiting).map(({ status }) => status),
      Array(10).fill(200),
    )
    await other.end()
  })

  t.test('The log contains only killed and rejected reloads', async (t) => {
    t.same(
      runtime.errors.filter((line) => !/DATABASE_BUSY|DATABASE_UNAVAILABLE|57P01/.test(line)),
      [],
    )
  })
})
