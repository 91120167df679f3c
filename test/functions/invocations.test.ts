// Records of invocations: each begun invocation has exactly one, whichever others share its transaction, and of several
// claimants only one runs a claimed invocation.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import {
  ClaimTaken,
  beginInvocation,
  endInvocation,
  recordInvocation,
  cachedFunction,
  type Claim,
} from '#tenant-runtime/functions/invocations/invocation-store.ts'
import { effort } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { deployFunction, invoke } from './support/deployed.ts'
import { ended, onError, recordsOf } from './support/invocations.ts'
import { openTenant } from './support/open-tenant.ts'
import { command } from './support/wasm.ts'

t.test('Records of invocations', { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t)

  t.test('Invocations that begin and end together have one record each, and rejected ones have none', async (t) => {
    const tenant = await runtime.addTenant()
    const { tenant: inside, close } = openTenant(tenant)
    const functionId = await deployFunction(tenant, { name: 'one', wasm: command() })
    const begunAs = { functionId, trigger: 'database', userId: null, at: Date.UTC(2026, 0, 1) } as const
    await deployFunction(tenant, { name: 'two', wasm: command() })
    const names = ['one', 'two', 'missing', 'one', "o'ne", '{}', 'two', '\0']
    const begun = await Promise.allSettled(
      names.map((name, n) =>
        beginInvocation(
          inside,
          { name, invocationId: `i${n}`, trigger: n === 6 ? 'webhook' : 'database', userId: n === 3 ? 'a"\\{}' : null },
          onError,
        ),
      ),
    )
    t.same(
      begun.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'rejected', 'rejected', 'fulfilled', 'rejected'],
    )
    for (const outcome of begun)
      if (outcome.status === 'rejected') t.match(outcome.reason, { code: 'NO_SUCH_FUNCTION' })
    t.match(
      (await recordsOf(tenant)).map(({ id, name, trigger, user_id, status, error_message }) => [
        id,
        name,
        trigger,
        user_id,
        status,
        error_message,
      ]),
      [
        ['i0', 'one', 'database', null, 'error', 'interrupted'],
        ['i1', 'two', 'database', null, 'error', 'interrupted'],
        ['i3', 'one', 'database', 'a"\\{}', 'error', 'interrupted'],
        ['i6', 'two', 'http', null, 'error', 'interrupted'],
      ],
    )
    await Promise.all(
      ['i0', 'i1', 'i3'].map((invocationId, n) =>
        endInvocation(
          inside,
          {
            ...ended,
            begun: begunAs,
            invocationId,
            ...(n === 1 ? { status: 'error', errorMessage: 'half \ud800 and \0' } : {}),
          },
          onError,
        ),
      ),
    )
    await endInvocation(
      inside,
      { ...ended, begun: begunAs, invocationId: 'i0', status: 'error', errorMessage: 'a second end' },
      onError,
    )
    t.match(
      (await recordsOf(tenant)).map(({ id, status, duration_ms, cpu_ms, memory_peak, error_message }) => [
        id,
        status,
        duration_ms,
        cpu_ms,
        memory_peak,
        error_message,
      ]),
      [
        ['i0', 'success', 2, 1.234, '65536', null],
        ['i1', 'error', 2, 1.234, '65536', 'half \ufffd and \ufffd'],
        ['i3', 'success', 2, 1.234, '65536', null],
        ['i6', 'error', 0, 0, '0', 'interrupted'],
      ],
    )
    await tenant.rows("delete from function_invocations where id = 'i6'")
    await Promise.all(
      ['i6', 'i1'].map((invocationId) =>
        endInvocation(inside, { ...ended, begun: begunAs, invocationId, log: { at: 0, lines: [], bytes: 0 } }, onError),
      ),
    )
    t.match(
      (await recordsOf(tenant)).filter(({ id }) => id === 'i1' || id === 'i6'),
      [
        { id: 'i1', status: 'error' },
        {
          id: 'i6',
          name: 'one',
          status: 'success',
          trigger: 'database',
          user_id: null,
          timestamp: new Date(Date.UTC(2026, 0, 1)),
          cpu_ms: 1.234,
        },
      ],
      'a record that the database has lost is written with its end',
    )
    t.match(await tenant.rows('select invocation_id from function_logs'), [{ invocation_id: 'i6' }])
    await tenant.request('DELETE', '/functions/v1/one', { as: 'service' })
    await endInvocation(inside, { ...ended, begun: begunAs, invocationId: 'i0' }, onError)
    t.same(
      (await recordsOf(tenant)).filter(({ name }) => name === 'one'),
      [],
      'a record of a deleted function is not written',
    )
    await close()
  })

  t.test('An invocation has ended once it has an end, also with the message "interrupted"', async (t) => {
    const tenant = await runtime.addTenant()
    const functionId = await deployFunction(tenant, { name: 'one', wasm: command() })
    const { tenant: inside, close } = openTenant(tenant)
    const begin = { name: 'one', invocationId: 'i1', trigger: 'http', userId: null } as const
    await beginInvocation(inside, begin, onError)
    t.match(await recordsOf(tenant), [{ state: 'interrupted', status: 'error', error_message: 'interrupted' }])
    const end = { ...ended, begun: { functionId, trigger: 'http', userId: null, at: 0 }, invocationId: 'i1' } as const
    await endInvocation(inside, { ...end, status: 'error', errorMessage: 'interrupted' }, onError)
    await endInvocation(inside, end, onError)
    t.match(await recordsOf(tenant), [{ state: 'ended', status: 'error', error_message: 'interrupted' }])
    const shown = (await tenant.request('GET', '/rest/v1/function_invocations', { as: 'service' })).list()
    t.notOk(
      shown.some((record) => 'state' in record),
      'the state is not a part of the API',
    )
    await close()
  })

  t.test('The record of a finished run is written at once if the function has not changed', async (t) => {
    const tenant = await runtime.addTenant()
    const { tenant: inside, close } = openTenant(tenant)
    const functionId = await deployFunction(tenant, { name: 'quick', wasm: command() })
    t.equal(cachedFunction(inside, 'quick'), undefined, 'a function that was never begun is not remembered')
    const remembered = async () => {
      const fn =
        cachedFunction(inside, 'quick') ??
        (await beginInvocation(
          inside,
          { name: 'quick', invocationId: randomUUID(), trigger: 'http', userId: null },
          onError,
        ))
      t.equal(cachedFunction(inside, 'quick'), fn)
      return fn
    }
    const begun = { functionId, trigger: 'http', userId: 'ada', at: Date.UTC(2026, 0, 1) } as const
    const log = {
      at: 0,
      lines: [{ timestamp: new Date(0).toISOString(), level: 'error', message: 'a line' }],
      bytes: 84,
    } as const
    const record = async (...ids: string[]) => {
      const fn = await remembered()
      return Promise.all(
        ids.map((invocationId, n) =>
          recordInvocation(
            inside,
            {
              ...ended,
              begun,
              invocationId,
              version: fn.updatedAt,
              log: n === 1 ? { ...log, lines: [...log.lines] } : undefined,
            },
            fn,
            onError,
          ),
        ),
      )
    }
    t.same(await record('a', 'b', 'c'), [true, true, true])
    t.match(
      (await recordsOf(tenant)).filter(({ user_id }) => user_id === 'ada'),
      ['a', 'b', 'c'].map((id) => ({
        id,
        function_id: functionId,
        trigger: 'http',
        status: 'success',
        duration_ms: 2,
        cpu_ms: 1.234,
        memory_peak: '65536',
        error_message: null,
        timestamp: new Date(Date.UTC(2026, 0, 1)),
      })),
    )
    t.match(await tenant.rows('select invocation_id, lines from function_logs'), [
      { invocation_id: 'b', lines: [{ message: 'a line' }] },
    ])
    const changes = [{ enabled: false }, { enabled: true }, { config: { environment: { A: '1' } } }]
    for (const change of changes) {
      if (change.enabled === true) {
        t.equal((await tenant.request('PATCH', '/functions/v1/quick', { as: 'service', body: change })).status, 200)
        continue
      }
      await remembered()
      t.equal((await tenant.request('PATCH', '/functions/v1/quick', { as: 'service', body: change })).status, 200)
      t.same(await record(`after ${JSON.stringify(change)}`), [false], JSON.stringify(change))
      t.equal(cachedFunction(inside, 'quick'), undefined, 'the function is read again')
    }
    const last = await remembered()
    t.equal((await tenant.request('DELETE', '/functions/v1/quick', { as: 'service' })).status, 204)
    t.equal(
      await recordInvocation(inside, { ...ended, begun, invocationId: 'late', version: last.updatedAt }, last, onError),
      false,
    )
    t.same(await recordsOf(tenant), [])
    await close()
  })

  t.test('A long run has a record while it runs, even after a shorter run of the function', async (t) => {
    const tenant = await runtime.addTenant()
    const forever = [0x03, 0x40, 0x0c, 0x00, 0x0b]
    await deployFunction(tenant, { name: 'spin', wasm: command({ code: forever }), config: { timeout: 1 } })
    for (const count of [1, 2]) {
      const response = invoke(tenant, 'spin')
      await until(
        async () =>
          (await recordsOf(tenant)).filter(({ error_message }) => error_message === 'interrupted').length === 1,
      )
      t.equal((await response).status, 504)
      t.same(
        (await recordsOf(tenant)).map(({ status }) => status),
        Array.from({ length: count }, () => 'timeout'),
      )
    }
    // The runtime logs an error of the function as a failed request.
    runtime.errors.splice(0)
  })

  t.test('Each response has its record, with many at once', async (t) => {
    const tenant = await runtime.addTenant()
    await deployFunction(tenant, { name: 'quick', wasm: command() })
    const ids: string[] = []
    await Promise.all(
      Array.from({ length: 16 }, async () => {
        for (let n = 0; n < effort({ small: 10, full: 500 }); n++) {
          const { status, headers } = await invoke(tenant, 'quick')
          if (status !== 200) throw new Error(`the status is ${status}`)
          ids.push(String(headers['x-invocation-id']))
        }
      }),
    )
    const stored = await recordsOf(tenant)
    t.same(
      stored.map(({ id }) => id),
      ids.sort(),
    )
    t.ok(stored.every(({ status }) => status === 'success'))
  })

  t.test(
    'During a deletion under load, accepted runs end, later calls return 404, and no record remains',
    async (t) => {
      const tenant = await runtime.addTenant()
      for (let round = 0; round < effort({ small: 3, full: 30 }); round++) {
        await deployFunction(tenant, { name: 'brief', wasm: command() })
        const statuses: number[] = []
        let deleted = false
        const late: number[] = []
        const load = Promise.all(
          Array.from({ length: 8 }, async () => {
            while (statuses.at(-1) !== 404) {
              const isLate = deleted
              const { status } = await invoke(tenant, 'brief')
              statuses.push(status)
              if (isLate) late.push(status)
            }
          }),
        )
        while (statuses.length < 8) await new Promise(setImmediate)
        t.equal((await tenant.request('DELETE', '/functions/v1/brief', { as: 'service' })).status, 204)
        deleted = true
        await load
        t.ok(
          late.every((status) => status === 404),
          late.join(),
        )
        t.ok(
          statuses.every((status) => status === 200 || status === 404),
          statuses.join(),
        )
        t.same(await tenant.rows('select * from function_invocations'), [])
      }
      t.same(runtime.errors, [])
    },
  )

  t.test('Of several claims on a run one succeeds, and the others leave no record', async (t) => {
    const tenant = await runtime.addTenant()
    await tenant.rows(
      `create table claims (function_id uuid, at text, primary key (function_id, at)); grant select, insert on claims to "${tenant.id}"`,
    )
    await deployFunction(tenant, { name: 'planned', wasm: command() })
    const insides = [openTenant(tenant), openTenant(tenant)]
    const claim = (at: string): Claim => ({
      text: 'insert into claims (function_id, at) select f.id, $5 from f on conflict do nothing returning 1',
      values: [at],
    })
    for (const at of ['noon', 'midnight']) {
      const tries = await Promise.allSettled(
        Array.from({ length: 8 }, (_, n) => {
          const inside = insides[n % 2]?.tenant
          if (inside === undefined) throw new Error('two tenants are open')
          return beginInvocation(
            inside,
            { name: 'planned', invocationId: randomUUID(), trigger: 'schedule', userId: null, claim: claim(at) },
            onError,
          )
        }),
      )
      t.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1)
      for (const outcome of tries) if (outcome.status === 'rejected') t.ok(outcome.reason instanceof ClaimTaken)
    }
    t.match(await recordsOf(tenant), [{ trigger: 'schedule' }, { trigger: 'schedule' }])
    for (const { tenant: inside, close } of insides) {
      await t.rejects(
        beginInvocation(
          inside,
          { name: 'missing', invocationId: 'x', trigger: 'schedule', userId: null, claim: claim('noon') },
          onError,
        ),
        { code: 'NO_SUCH_FUNCTION' },
      )
      await close()
    }
    t.equal((await tenant.rows('select * from claims')).length, 2)
  })
})
