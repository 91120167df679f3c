// After an error, a cancel, a kill or a broken socket at each point of the round trip, no role or claim survives: the
// connection is clean, or it is closed. Exactly the writes that were acknowledged are stored.
import t, { type Test } from 'tap'
import { Connections, defaultConnectionLimits, type ConnectionLimits } from '#tenant-runtime/database/connections.ts'
import { ScopedDatabase } from '#tenant-runtime/database/scoped-database.ts'
import { sql, type Result, type Statement } from '#tenant-runtime/database/statement.ts'
import { RoundTripError } from '#tenant-runtime/database/round-trip-error.ts'
import type { RlsContext } from '#tenant-runtime/tenancy/rls-context.ts'
import { effort } from '#test/support/effort.ts'
import { createHome } from '#test/support/home.ts'
import { query, startPostgres } from '#test/support/postgres.ts'
import { openMessageProxy, type Fate, type Message } from './support/message-proxy.ts'

const user: RlsContext = { role: 'authenticated', userId: 'ada', claims: '{"sub":"ada","secret":"of ada"}' }
const settings =
  "select current_setting('app.tenant_id', true) as tenant, current_setting('app.role', true) as role," +
  " current_setting('app.user_id', true) as user_id, current_setting('request.jwt.claims', true) as claims"
const insert = (mark: string) => sql("insert into event_log (type, owner_id, payload) values ($1, 'ada', '{}')", mark)

t.test('A round trip leaves no role and no claim on its connection', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const home = await createHome(postgres)
  const proxy = await openMessageProxy(t, postgres.port)
  const login = { tenantId: home.tenantId, url: home.url.replace(`:${postgres.port}/`, `:${proxy.port}/`) }
  const superuser = postgres.url('homes')
  const backends = async () =>
    query(
      superuser,
      'select pid, state, wait_event_type, xact_start::text, backend_xid from pg_stat_activity where usename = $1',
      [home.tenantId],
    )
  const stored = async (mark: string) =>
    (await query(superuser, `select 1 from "${home.schema}".event_log where type = $1`, [mark])).length
  const until = async (what: string, holds: () => Promise<boolean>) => {
    for (const deadline = Date.now() + 10_000; !(await holds());)
      if (Date.now() > deadline) throw new Error(`never: ${what}`)
  }
  /** Opens a pool of one connection, so that the next user receives the same connection. */
  const open = async (limits: Partial<ConnectionLimits> = {}) => {
    const connections = new Connections({ ...defaultConnectionLimits, total: 1, perTenant: 1, ...limits })
    const database = new ScopedDatabase(connections, { tenantId: home.tenantId, url: login.url, ddlUrl: home.ddl_url })
    const connection = await connections.acquire(login)
    const {
      rows: [row],
    } = await connection.client.query<{ pid: number }>('select pg_backend_pid() as pid')
    connections.release(login, connection, true)
    return { connections, database, pid: Number(row?.pid) }
  }
  type Opened = Awaited<ReturnType<typeof open>>

  /** Checks the next connection and returns whether it is the former one. Closes the pool. */
  const leavesNothing = async (t: Test, { connections, pid }: Opened, label: string): Promise<'reused' | 'closed'> => {
    const connection = await connections.acquire(login)
    const [mine] = (await connection.client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows
    // Another session reads this between two statements, in the state that the next caller would find.
    const seen = (await backends()).find((backend) => backend['pid'] === mine?.pid)
    t.match(seen, { state: 'idle', xact_start: null, backend_xid: null }, `${label}: no transaction is open`)
    const { rows } = await connection.client.query(
      `${settings}, current_user::text as now, session_user::text as login`,
    )
    const [{ now, login: session, ...context } = {}] = rows as Record<string, string | null>[]
    t.same([now, session], [home.tenantId, home.tenantId], `${label}: the login's own role`)
    t.same(
      Object.values(context).filter((value) => value !== null && value !== ''),
      [],
      `${label}: no setting`,
    )
    if (mine?.pid !== pid)
      await until(`${label}: the former connection is closed`, async () =>
        (await backends()).every((backend) => backend['pid'] !== pid),
      )
    connections.release(login, connection, true)
    await connections.close()
    return mine?.pid === pid ? 'reused' : 'closed'
  }
  const outcomeOf = (work: Promise<Result[]>): Promise<Result[] | RoundTripError> =>
    work.catch((error: unknown) => {
      if (error instanceof RoundTripError) return error
      throw error
    })

  /** A fault that occurs in a session before one of its messages is forwarded. */
  type Fault = (message: Message, pid: number) => Promise<Fate>
  const faults: Record<'cancel' | 'kill' | 'cut', Fault> = {
    async cancel(_message, pid) {
      await query(superuser, 'select pg_cancel_backend($1)', [pid])
      return 'pass'
    },
    async kill(_message, pid) {
      await query(superuser, 'select pg_terminate_backend($1, 10000)', [pid])
      return 'pass'
    },
    cut: async () => 0,
  }

  /**
   * Runs the round trip with a fault before the message at a position; returns undefined if there is no such message.
   */
  let runs = 0
  const withFault = async (
    t: Test,
    kind: string,
    isPrepared: boolean,
    position: number,
    fault: Fault,
    isStreamed = false,
  ) => {
    const opened = await open()
    const mark = `run-${++runs}`
    const roundTrip = async (): Promise<Result[]> => {
      const [first, second] = [insert(mark), sql(settings)]
      if (!isStreamed)
        return opened.database.run(
          user,
          first,
          second,
          sql('select count(*) as n from event_log where type = $1', mark),
        )
      const { before, body } = await opened.database.stream(
        user,
        [first, second],
        sql('select n::text from generate_series(1, 3) n'),
        { begin: '', between: ',', end: '' },
        AbortSignal.any([]),
      )
      t.equal((await body.toArray()).join(''), '1,2,3')
      return before
    }
    if (isPrepared) await roundTrip()
    const before = await stored(mark)
    let type: string | undefined
    let executed = 0
    proxy.decide = async (message) => {
      if (type !== undefined) return 'pass'
      if (message.position !== position) {
        if (message.type === 'E') executed++
        return 'pass'
      }
      type = message.type
      await message.settled()
      return fault(message, opened.pid)
    }
    const outcome = await outcomeOf(roundTrip())
    proxy.decide = undefined
    if (type === undefined) {
      await opened.connections.close()
      return undefined
    }
    const label = `${kind} before ${type} at ${position}${isPrepared ? ', prepared' : ''}`
    const fate = await leavesNothing(t, opened, label)
    t.equal(
      (await stored(mark)) - before,
      outcome instanceof RoundTripError ? 0 : 1,
      `${label}: stored once if it succeeded, and otherwise not`,
    )
    if (!(outcome instanceof RoundTripError)) {
      t.same(
        outcome[1]?.rows,
        [{ tenant: home.tenantId, role: 'authenticated', user_id: 'ada', claims: '{"sub":"ada","secret":"of ada"}' }],
        label,
      )
    }
    return { outcome, fate, label, type, executed }
  }

  for (const isPrepared of [false, true]) {
    t.test(
      `With a fault before each message of a round trip${isPrepared ? ' with prepared statements' : ''}, nothing remains`,
      async (t) => {
        const seen = { cancel: 0, kill: 0, cut: 0 }
        for (const kind of ['cancel', 'kill', 'cut'] as const) {
          for (let position = 0; ; position++) {
            const result = await withFault(t, kind, isPrepared, position, faults[kind])
            if (result === undefined) break
            const { outcome, fate, label, type } = result
            seen[kind]++
            t.equal(fate, kind === 'cancel' ? 'reused' : 'closed', label)
            // Postgres ignores a cancel between messages. A session that it ends reports this, and the round trip is
            // repeated, unless only the response to the Sync is missing.
            t.equal(outcome instanceof RoundTripError, kind === 'cut' || (kind === 'kill' && type === 'S'), label)
          }
        }
        const messages = isPrepared ? 4 * 2 + 1 : 4 * 4 + 1
        t.same(seen, { cancel: messages, kill: messages, cut: messages }, 'a fault occurred before each message')
      },
    )
  }

  for (const isPrepared of [false, true]) {
    t.test(
      `With a fault before each message of a streamed response${isPrepared ? ' with prepared statements' : ''}, nothing remains`,
      async (t) => {
        for (const kind of ['cancel', 'kill', 'cut'] as const) {
          let hasEnded = false
          for (let position = 0; ; position++) {
            const result = await withFault(t, kind, isPrepared, position, faults[kind], true)
            if (result === undefined) break
            const { outcome, fate, label, type, executed } = result
            if (type === 'S') hasEnded = true
            t.equal(fate, kind === 'cancel' ? 'reused' : 'closed', label)
            // The Sync is sent as soon as the last of the four statements has ended. A connection that breaks before
            // that has changed nothing.
            t.equal(outcome instanceof RoundTripError, kind !== 'cancel' && executed >= 4, label)
          }
          t.ok(hasEnded, `${kind}: also before its Sync`)
        }
      },
    )
  }

  t.test('A connection that breaks within a message is closed', async (t) => {
    for (const isPrepared of [false, true]) {
      for (let position = 0; ; position++) {
        let length = 1
        const step = () => effort({ small: Math.ceil(length / 2), full: 1 })
        let wasThere = false
        for (let bytes = 1; bytes < length || !wasThere; bytes += step()) {
          const result = await withFault(t, `broken after ${bytes} bytes`, isPrepared, position, async (message) => {
            length = message.bytes.length
            return Math.min(bytes, length - 1)
          })
          if (result === undefined) break
          wasThere = true
          t.ok(result.outcome instanceof RoundTripError, result.label)
          t.equal(result.fate, 'closed', result.label)
        }
        if (!wasThere) break
      }
    }
  })

  t.test('After an error in any statement, nothing remains', async (t) => {
    await query(
      home.adminUrl,
      `
      create table once (id int primary key, tenant_id text not null default '${home.tenantId}');
      create function reject_row() returns trigger language plpgsql as $$ begin raise exception 'rejected at the end'; end $$;
      create constraint trigger late after insert on once deferrable initially deferred for each row execute function reject_row();
      create policy tenant on once using (true); create policy none on once as restrictive for delete using (false);
      alter table once enable row level security;
      create function loud() returns int language plpgsql as $$ begin
        raise warning 'mind this'; raise exception 'rejected' using errcode = 'P0001'; end $$;
      create function changes() returns int language plpgsql as $$ begin
        perform set_config('app.role', 'service_role', true); raise exception 'rejected after a change'; end $$`,
    )
    const errors: Record<string, [statement: Statement, sqlstate: string | undefined, fate: 'reused' | 'closed']> = {
      'parse: no SQL': [sql('selec'), '42601', 'reused'],
      'parse: no such table': [sql('select * from nowhere'), '42P01', 'reused'],
      'parse: no such function': [sql('select nothing(1)'), '42883', 'reused'],
      'parse: not prepared for long': [{ ...sql('selec'), prepare: 'once' }, '42601', 'reused'],
      'bind: a value of another type': [sql('select $1::int', 'x'), '22P02', 'reused'],
      'bind: too few values': [sql('select $1::int, $2::int', 1), '08P01', 'reused'],
      'bind: a NUL': [sql('select $1::text', 'a\0b'), '22021', 'reused'],
      'execute: division': [sql('select 1 / $1::int', 0), '22012', 'reused'],
      'execute: in the last of many rows': [
        sql('select 1 / (2000 - n) from generate_series(1, 2000) n'),
        '22012',
        'reused',
      ],
      'execute: constraint': [
        sql("insert into schemas (name, fields, rls_policy) values ('1', '[]', '{}')"),
        '42501',
        'reused',
      ],
      'execute: not null': [sql('insert into event_log (type, payload) values (null, null)'), '23502', 'reused'],
      'execute: no grant': [sql('update event_log set type = null'), '42501', 'reused'],
      'execute: raised, with a warning before it': [sql('select loud()'), 'P0001', 'reused'],
      'execute: raised after the settings were changed': [sql('select changes()'), 'P0001', 'reused'],
      'execute: another role': [sql(`set role "${home.tenantId}_owner"`), '42501', 'reused'],
      'sync: a deferred constraint': [sql('insert into once values (1)'), 'P0001', 'reused'],
      'a response beyond the maximum size': [sql("select repeat('x', 70000000)"), undefined, 'closed'],
    }
    for (const [label, [statement, sqlstate, fate]] of Object.entries(errors)) {
      for (let location = 0; location <= 2; location++) {
        const opened = await open()
        const mark = `${label} ${location}`
        const statements = [insert(mark), sql(settings)]
        statements.splice(location, 0, statement)
        const outcome = await outcomeOf(opened.database.run(user, ...statements))
        if (!(outcome instanceof RoundTripError)) throw new Error(`${mark} did not fail`)
        t.equal(outcome.sqlstate, sqlstate, mark)
        t.equal(await leavesNothing(t, opened, mark), fate, mark)
        t.equal(await stored(mark), 0, `${mark}: nothing is stored`)
      }
    }
  })

  t.test('A round trip that is cancelled or killed while a statement runs is repeated', async (t) => {
    await query(home.adminUrl, 'create table held (id int primary key); insert into held values (1)')
    const locked = sql('update held set id = 1')
    for (const how of ['pg_cancel_backend($1)', 'pg_terminate_backend($1, 10000)']) {
      for (let location = 0; location <= 2; location++) {
        const opened = await open()
        const label = `${how} in statement ${location}`
        const statements = [insert(label), sql(settings)]
        statements.splice(location, 0, locked)
        const holder = new Connections(defaultConnectionLimits)
        const { client } = await holder.acquire({ tenantId: home.tenantId, url: home.adminUrl })
        await client.query('begin; update held set id = 1')
        const outcome = outcomeOf(opened.database.run(user, ...statements))
        const waiting = async () =>
          (await backends()).find((backend) => backend['wait_event_type'] === 'Lock')?.['xact_start']
        await until(`${label}: it waits for the lock`, async () => (await waiting()) !== undefined)
        const first = await waiting()
        await query(superuser, `select ${how}`, [opened.pid])
        // The repeated round trip waits again, on the same connection or another.
        await until(
          `${label}: the repeated one waits for the lock`,
          async () => ![undefined, first].includes(await waiting()),
        )
        await client.query('commit')
        t.notOk((await outcome) instanceof RoundTripError, `${label}: the caller notices nothing`)
        t.equal(await leavesNothing(t, opened, label), how.startsWith('pg_cancel') ? 'reused' : 'closed', label)
        t.equal(await stored(label), 1, `${label}: and it is stored once`)
        await holder.close()
        await client.end()
      }
    }
  })

  t.test('A round trip beyond its time limit, or cancelled after a long time, fails', async (t) => {
    for (let location = 0; location <= 2; location++) {
      const opened = await open({ statementMilliseconds: 1_200 })
      const label = `over the time limit in statement ${location}`
      const statements = [insert(label), sql(settings)]
      statements.splice(location, 0, sql('select pg_sleep(60)'))
      const outcome = await outcomeOf(opened.database.run(user, ...statements))
      t.match(outcome, { sqlstate: '57014', undone: true, reusable: true }, `${label}: it is not repeated`)
      t.equal(await leavesNothing(t, opened, label), 'reused', label)
      t.equal(await stored(label), 0, label)
    }
    for (const [how, sqlstate] of [
      ['pg_cancel_backend($1)', '57014'],
      ['pg_terminate_backend($1)', '57P01'],
    ] as const) {
      const opened = await open()
      const outcome = outcomeOf(opened.database.read(user, sql('select pg_sleep(60)')))
      const runsLong = async () =>
        (
          await query(
            superuser,
            "select 1 from pg_stat_activity where pid = $1 and state = 'active' and clock_timestamp() > query_start + '1.1 s'",
            [opened.pid],
          )
        ).length === 1
      await until(`${how}: the statement runs for a long time`, runsLong)
      await query(superuser, `select ${how}`, [opened.pid])
      t.match(await outcome, { sqlstate }, `${how}: ending a long statement is deliberate`)
      await leavesNothing(t, opened, how)
    }
  })

  t.test('The next caller has its own context, whatever a trigger of the tenant left on the session', async (t) => {
    await query(
      home.adminUrl,
      `create function leaves() returns int language plpgsql as $$ begin
      perform set_config('app.tenant_id', 'other', false), set_config('app.role', 'service_role', false),
        set_config('app.user_id', 'eve', false), set_config('request.jwt.claims', '{"role":"service_role"}', false);
      return 1; end $$`,
    )
    const { connections, database, pid } = await open()
    await database.run(user, sql('select leaves()'))
    const [next] = await database.run({ role: 'anon' }, sql(`${settings}, pg_backend_pid() as pid`))
    t.same(next?.rows, [{ tenant: home.tenantId, role: 'anon', user_id: '', claims: '{"role":"anon"}', pid }])
    await connections.close()
  })

  t.test('A round trip whose connection breaks is repeated if it only reads, and not if it writes', async (t) => {
    for (const lost of ['request', 'response'] as const) {
      for (const kind of ['read', 'lookUp', 'run'] as const) {
        const opened = await open()
        const label = `${kind}, ${lost} lost`
        let lostSo = 0
        proxy.decide = async ({ type, settled }) => {
          if (type !== 'S' || lostSo++ > 0) return 'pass'
          await settled()
          return lost === 'request' ? 0 : Infinity
        }
        const statement = kind === 'run' ? insert(label) : sql('select 1 as one')
        const work =
          kind === 'lookUp'
            ? opened.database.lookUp(user, statement).then((result) => [result])
            : opened.database[kind](user, statement)
        const outcome = await outcomeOf(work)
        proxy.decide = undefined
        if (kind === 'run')
          t.match(outcome, { sqlstate: undefined, undone: false, reusable: false }, `${label}: the outcome is unknown`)
        else t.match(outcome, [{ rows: [{ one: 1 }] }], label)
        t.equal(await leavesNothing(t, opened, label), 'closed', label)
        if (kind === 'run') t.equal(await stored(label), lost === 'response' ? 1 : 0, label)
      }
    }
  })
})
