// Tenants share the executors: tenants with endless functions do not delay a neighbour, and a run whose caller has
// disconnected is stopped.
import { request } from 'node:http'
import { getPriority } from 'node:os'
import t from 'tap'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { deployFunction, invoke, moduleProcessesOf } from './support/deployed.ts'
import { compileHostCaller } from './support/host-caller.ts'
import { command, forever } from './support/wasm.ts'

const endless = command({ code: forever })

/** Calls a function. @returns a function that disconnects */
function call(tenant: TestTenant, name: string, path = `/functions/v1/invoke/${name}`): () => void {
  const sent = request({
    host: '127.0.0.1',
    port: tenant.port,
    method: 'POST',
    path,
    headers: { ...tenant.as('ada'), 'content-type': 'text/plain', 'content-length': 0 },
  })
  sent.on('error', () => undefined)
  sent.end()
  return () => sent.destroy()
}

function hasLowestPriority(pid: number): boolean {
  try {
    return getPriority(pid) === 19
  } catch {
    return false
  }
}

const records = (tenant: TestTenant) =>
  tenant.rows('select status, error_message from function_invocations order by timestamp')

t.test('A run that waits keeps its priority', { timeout: 60_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant({ name: 'waiting' })
  await deployFunction(tenant, { name: 'host-caller', wasm: await compileHostCaller() })
  const waiting = tenant.request('POST', '/functions/v1/invoke/host-caller', {
    as: 'ada',
    body: ['query', 'select pg_sleep(3)', '', ''].join('\u001e'),
    headers: { 'content-type': 'text/plain' },
  })
  const priorities = new Set<boolean>()
  const watching = setInterval(() => {
    void moduleProcessesOf(process.pid).then((pids) => pids.forEach((pid) => priorities.add(hasLowestPriority(pid))))
  }, 100)
  const { status, text } = await waiting
  clearInterval(watching)
  t.equal(status, 200, text)
  t.same([...priorities], [false])
})

t.test('Four tenants with four endless functions each do not delay a neighbour', { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const names = ['one', 'two', 'three', 'four']
  const neighbour = await runtime.addTenant({ name: 'neighbour' })
  await deployFunction(neighbour, { name: 'quick', wasm: command() })
  const hostile: TestTenant[] = []
  for (const name of names) {
    const tenant = await runtime.addTenant({ name })
    for (const fn of names) await deployFunction(tenant, { name: fn, wasm: endless, config: { timeout: 60 } })
    hostile.push(tenant)
  }
  const leave = hostile.flatMap((tenant) => names.map((name) => call(tenant, name)))
  t.teardown(() => leave.forEach((one) => one()))
  const begun = async () => (await Promise.all(hostile.map(records))).flat().length
  await until(async () => (await begun()) === 16, 'all calls are recorded')
  await until(
    async () => (await moduleProcessesOf(process.pid)).filter(hasLowestPriority).length >= 8,
    'long runs continue at the lowest priority',
  )
  for (let n = 0; n < 20; n++) t.equal((await invoke(neighbour, 'quick')).status, 200)
  const interrupted = (await Promise.all(hostile.map(records))).flat()
  t.ok(
    interrupted.every(({ error_message }) => error_message === 'interrupted'),
    'the endless functions, of which none has ended, did not delay it',
  )

  for (const one of leave) one()
  await until(
    async () =>
      (await Promise.all(hostile.map(records)))
        .flat()
        .every(
          ({ status, error_message }) =>
            status === 'error' && error_message === 'The invocation was stopped because its caller disconnected.',
        ),
    'runs and waiting calls are stopped when their callers have left',
  )
  t.equal((await invoke(neighbour, 'quick')).status, 200)
})

t.test(
  'A run, and a wait for one, ends when its caller disconnects; a full queue rejects its own tenant',
  { timeout: 60_000 },
  async (t) => {
    const runtime = await startRuntime(t, { functions: { total: 2, waitingPerTenant: 1 } })
    const tenant = await runtime.addTenant()
    for (const name of ['spin', 'turn']) await deployFunction(tenant, { name, wasm: endless, config: { timeout: 60 } })
    const leave = call(tenant, 'spin')
    await until(async () => (await records(tenant)).length === 1, 'the run has begun')
    const longRuns = async () => (await moduleProcessesOf(process.pid)).filter(hasLowestPriority)
    await until(async () => (await longRuns()).length === 1, 'the run takes long')
    const leaveQueue = call(tenant, 'turn', '/functions/v1/turn')
    await until(async () => (await records(tenant)).length === 2, 'the second call waits')
    const busy = await invoke(tenant, 'spin')
    t.match(busy.json(), {
      code: 'FUNCTIONS_BUSY',
      message: 'Too many invocations of this tenant are waiting. At most 1 are allowed.',
    })
    t.equal(busy.status, 503)
    leaveQueue()
    await until(
      async () => (await records(tenant)).some(({ error_message }) => error_message !== 'interrupted'),
      'the waiting call is over',
    )
    t.same(
      (await records(tenant)).map(({ error_message }) => error_message),
      ['interrupted', 'The invocation was stopped because its caller disconnected.'],
    )
    leave()
    await until(
      async () => (await records(tenant)).every(({ error_message }) => error_message !== 'interrupted'),
      'the run is over',
    )
    await until(async () => (await longRuns()).length === 0, 'its process has ended')
  },
)
