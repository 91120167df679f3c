// Records of invocations by page, and sums of usage that are compared with their records.
import t from 'tap'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { compileSource } from '#examples/functions/compile.ts'
import { deployFunction, invoke } from './support/deployed.ts'
import { command } from './support/wasm.ts'

const hour = 3_600_000
const begin = Date.UTC(2026, 2, 30, 22)

interface Made {
  at: number
  status: string
  trigger: string
  duration: number
  cpu: number
  memory: number
  egress: number
}

/** Two records every 20 minutes, across the end of a month. */
const made: Made[] = Array.from({ length: 120 }, (_, n) => ({
  at: begin + Math.floor(n / 2) * 20 * 60_000,
  status: ['success', 'success', 'error', 'timeout'][n % 4] ?? '',
  trigger: ['http', 'database', 'schedule'][n % 3] ?? '',
  duration: 10 + n,
  cpu: n / 8,
  memory: 65_536 * (1 + (n % 7)),
  egress: 1_000 * n,
}))

async function record(tenant: TestTenant, functionId: string): Promise<void> {
  for (const [n, { at, status, trigger, duration, cpu, memory, egress }] of made.entries()) {
    await tenant.rows(
      `insert into function_invocations (id, function_id, trigger, status, duration_ms, cpu_ms, memory_peak,
        egress_bytes, error_message, user_id, timestamp) values ($1, $2, $3, $4, $5, $6, $7, $8, null, 'ada', $9)`,
      [
        `${functionId}-${String(n).padStart(3, '0')}`,
        functionId,
        trigger,
        status,
        duration,
        cpu,
        memory,
        egress,
        new Date(at).toISOString(),
      ],
    )
  }
}

const time = (at: number) => new Date(at).toISOString()

t.test('Reports', { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const id = await deployFunction(tenant, { name: 'usage', wasm: command() })
  await record(tenant, id)
  const request = (path: string, as: string | undefined = 'service') =>
    tenant.request('GET', `/functions/v1/${path}`, { as })
  const list = async (query: string) => {
    const response = await request(`usage/invocations?${query}`)
    if (response.status !== 200) throw new Error(response.text)
    const { invocations, next_cursor: next } = response.json()
    return { ids: (invocations as { id: string }[]).map(({ id }) => Number(id.slice(-3))), next: next as string | null }
  }
  const wanted = (isWanted: (one: Made, n: number) => boolean) =>
    made.flatMap((one, n) => (isWanted(one, n) ? [n] : [])).reverse()

  t.test('Invocations are listed newest first and once each, with every filter and page size', async (t) => {
    t.match((await request('usage/invocations?limit=1')).json(), {
      invocations: [
        {
          id: `${id}-119`,
          trigger: 'schedule',
          status: 'timeout',
          duration_ms: 129,
          cpu_ms: 14.875,
          memory_peak: 65_536,
          egress_bytes: 119_000,
          error_message: null,
          user_id: 'ada',
          timestamp: time(made[119]?.at ?? 0),
        },
      ],
    })
    t.same(
      (await list('limit=1000')).ids,
      wanted(() => true),
    )
    for (const [query, isWanted] of [
      ['', () => true],
      ['&status=error,timeout', ({ status }) => status !== 'success'],
      ['&trigger=database', ({ trigger }) => trigger === 'database'],
      [
        `&since=${time(begin + hour)}&until=${time(begin + 3 * hour)}`,
        ({ at }) => at >= begin + hour && at < begin + 3 * hour,
      ],
      [
        '&since=2026-03-31&until=2026-04-01&status=success&trigger=http',
        ({ at, status, trigger }) =>
          at >= Date.UTC(2026, 2, 31) && at < Date.UTC(2026, 3, 1) && status === 'success' && trigger === 'http',
      ],
    ] satisfies [string, (one: Made) => boolean][]) {
      const found: number[] = []
      for (let cursor = ''; ;) {
        const { ids, next } = await list(`limit=7${query}${cursor}`)
        found.push(...ids)
        if (next === null) break
        cursor = `&cursor=${next}`
      }
      t.same(found, wanted(isWanted), query)
    }
    t.same((await list('since=2026-05-01')).ids, [])
  })

  t.test('Usage by hour, by day and in total equals the sums of the records', async (t) => {
    for (const [granularity, milliseconds] of [
      ['hour', hour],
      ['day', 24 * hour],
    ] as const) {
      const [since, until] = [begin + hour, begin + 15 * hour]
      const { total, buckets, ...rest } = (
        await request(`usage/usage?since=${time(since)}&until=${time(until)}&granularity=${granularity}`)
      ).json()
      t.same(rest, { since: time(since), until: time(until), granularity })
      const selected = made.filter(({ at }) => at >= since && at < until)
      const starts = [...new Set(selected.map(({ at }) => Math.floor(at / milliseconds) * milliseconds))]
      t.same(
        buckets,
        starts.map((start) => ({
          start: time(start),
          ...summed(selected.filter(({ at }) => at >= start && at < start + milliseconds)),
        })),
      )
      t.same(total, summed(selected))
    }
    t.same(
      (await request('usage/usage?since=2026-03-01&until=2026-04-01')).json()['total'],
      summed(made.filter(({ at }) => at < Date.UTC(2026, 3, 1))),
    )
    t.same((await request('usage/usage?since=2025-01-01&until=2025-01-02')).json(), {
      since: '2025-01-01T00:00:00.000Z',
      until: '2025-01-02T00:00:00.000Z',
      granularity: 'day',
      total: summed([]),
      buckets: [],
    })
  })

  t.test('The name "-" returns the usage of all functions', async (t) => {
    await record(tenant, await deployFunction(tenant, { name: 'other', wasm: command() }))
    const { total } = (await request('-/usage?since=2026-03-01&until=2026-05-01')).json()
    t.same(total, summed([...made, ...made]))
    t.same((await request('other/usage?since=2026-03-01&until=2026-05-01')).json()['total'], summed(made))
    const fresh = await runtime.addTenant()
    t.match((await fresh.request('GET', '/functions/v1/-/usage', { as: 'service' })).json(), {
      total: summed([]),
      buckets: [],
    })
  })

  t.test('A run is selected at once, with what it used', async (t) => {
    await deployFunction(tenant, {
      name: 'busy',
      wasm: await compileSource(
        'let n: u32 = 0; for (let i: u32 = 0; i < 30000000; i++) n ^= i * n + 7; process.stdout.write(n.toString())',
      ),
    })
    t.equal((await invoke(tenant, 'busy')).status, 200)
    const { total } = (await request('busy/usage')).json() as { total: ReturnType<typeof summed> }
    t.match(total, { invocations: { success: 1, error: 0, timeout: 0 } })
    t.ok(
      total.cpu_ms > 0 && total.duration_ms > 0 && total.memory_peak >= 65_536 && total.memory_byte_seconds > 0,
      JSON.stringify(total),
    )
    const [run] = await tenant.rows(
      "select i.cpu_ms, i.duration_ms from function_invocations i join functions f on f.id = i.function_id where f.name = 'busy'",
    )
    t.equal(total.cpu_ms, Number(run?.['cpu_ms']))
    t.equal(total.duration_ms, Number(run?.['duration_ms']))
  })

  t.test('A change of the environment applies to the next invocation without a deployment', async (t) => {
    await deployFunction(tenant, {
      name: 'printer',
      wasm: await compileSource("process.stdout.write(process.env.has('COLOUR') ? process.env.get('COLOUR') : 'none')"),
      config: { environment: { COLOUR: 'blue' } },
    })
    const outputs = [(await invoke(tenant, 'printer')).text]
    for (const colour of ['green', null, 'red']) {
      t.equal(
        (
          await tenant.request('PATCH', '/functions/v1/printer', {
            as: 'service',
            body: { config: { environment: { COLOUR: colour } } },
          })
        ).status,
        200,
      )
      outputs.push(...(await Promise.all([1, 2, 3].map(() => invoke(tenant, 'printer')))).map(({ text }) => text))
    }
    t.same(outputs, ['blue', 'green', 'green', 'green', 'none', 'none', 'none', 'red', 'red', 'red'])
  })

  t.test('Only the service reads usage, and invalid queries are rejected', async (t) => {
    for (const what of ['invocations', 'usage']) {
      t.equal((await request(`usage/${what}`, 'ada')).status, 403)
      t.equal((await tenant.request('GET', `/functions/v1/usage/${what}`)).status, 401)
      t.match((await request(`missing/${what}`)).json(), { code: 'NO_SUCH_FUNCTION' })
    }
    for (const [path, code, message] of [
      ['invocations?status=done', 'BAD_REQUEST', /success, error, timeout/],
      ['invocations?trigger=webhook', 'BAD_REQUEST', /http, database, schedule/],
      ['invocations?cursor=AAAA', 'BAD_REQUEST', /"cursor"/],
      ['invocations?limit=many', 'BAD_REQUEST', /"limit"/],
      ['invocations?page=2', 'UNKNOWN_PARAMETER', /"page"/],
      ['usage?granularity=week', 'BAD_REQUEST', /hour, day/],
      ['usage?since=2026-02-01&until=2026-01-01', 'BAD_REQUEST', /later/],
      ['usage?since=2026-01-01&until=2026-03-01&granularity=hour', 'BAD_REQUEST', /31 days/],
      ['usage?since=2024-01-01&until=2026-01-01', 'BAD_REQUEST', /366 days/],
      ['usage?since=2026-13-01', 'BAD_REQUEST', /"since"/],
    ] as const) {
      const response = await request(`usage/${path}`)
      t.match({ status: response.status, ...response.json() }, { status: 400, code, message }, path)
    }
  })

  t.test("The tenant's total usage counts the same invocations", async (t) => {
    const [stored] = await tenant.rows(
      "select count(*)::int as count from function_invocations where timestamp >= date_trunc('month', now(), 'UTC')",
    )
    const { total } = (await request('-/usage')).json() as { total: ReturnType<typeof summed> }
    t.equal(
      Object.values(total.invocations).reduce((sum, count) => sum + count),
      stored?.['count'],
    )
  })
})

function summed(records: readonly Made[]) {
  const sum = (of: (one: Made) => number) => records.reduce((total, one) => total + of(one), 0)
  const count = (status: string) => records.filter((one) => one.status === status).length
  return {
    invocations: { success: count('success'), error: count('error'), timeout: count('timeout') },
    duration_ms: sum(({ duration }) => duration),
    cpu_ms: sum(({ cpu }) => cpu),
    memory_byte_seconds: Math.round(sum(({ memory, duration }) => memory * duration) / 1000),
    memory_peak: Math.max(0, ...records.map(({ memory }) => memory)),
    egress_bytes: sum(({ egress }) => egress),
  }
}
