// Executors, runtime and Postgres killed under load: each accepted invocation has exactly one record, and the others
// continue. A function that is disabled or deleted under load returns 404 at once.
import { readdir } from 'node:fs/promises'
import t from 'tap'
import { compileCSource } from '#examples/functions/compile-native.ts'
import { chanceOf } from '#test/simulation/chance.ts'
import { openControl, startProcess, type RuntimeProcess } from '#test/storage/support/runtime-process.ts'
import { openScene, type Scene } from '#test/storage/support/scene.ts'
import { effort, seed } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import { signToken, startRuntime, type ApiResponse } from '#test/support/runtime.ts'
import { deploy, executorsOf, moduleProcessesOf, invoke, killAll, type Requester } from './support/deployed.ts'
import { command } from './support/wasm.ts'

const workers = 6

/** Takes some milliseconds, so that a kill can interrupt it. */
const busy = `
  #include <stdio.h>
  int main(void) {
    volatile unsigned sum = 0;
    for (unsigned n = 0; n < 4000000; n++) sum += n;
    printf("%u", sum);
    return 0;
  }
`

/** The outcome of one invocation for its caller. `none`: the caller received no response. */
type Outcome = 'success' | 'failure' | 'rejected' | 'none'

function outcomeOf({ status, text }: ApiResponse): Outcome {
  if (status === 200) return 'success'
  // The executor was killed after the invocation was accepted, so the invocation has a record.
  if (status === 500 && text.includes('HOST_FUNCTION_ERROR')) return 'failure'
  // The invocation did not begin, or its state is unknown: the database was away, or no executor could be started.
  if (status === 503) return 'rejected'
  throw new Error(`unexpected response: ${status} ${text}`)
}

/** Callers that continue after every failure. Each call has its own user, by which its record is found. */
class Callers {
  readonly outcomes = new Map<string, Outcome>()
  runtime: RuntimeProcess
  readonly #scene: Scene
  #isOver = false
  #running: Promise<unknown> = Promise.resolve()
  wrong: unknown

  constructor(scene: Scene, runtime: RuntimeProcess) {
    this.#scene = scene
    this.runtime = runtime
  }

  begin(): void {
    this.#running = Promise.all(Array.from({ length: workers }, () => this.#call())).catch(
      (error: unknown) => (this.wrong = error),
    )
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  count(wanted: Outcome): number {
    return [...this.outcomes.values()].filter((outcome) => outcome === wanted).length
  }

  async #call(): Promise<void> {
    while (!this.#isOver) {
      const sub = `call-${this.outcomes.size}`
      this.outcomes.set(sub, 'none')
      const token = signToken(
        { sub, role: 'authenticated', exp: Math.floor(Date.now() / 1000) + 3600 },
        this.#scene.manifest.jwt_secrets[0] ?? '',
      )
      const response = await this.runtime
        .request('POST', '/functions/v1/invoke/busy', '', {
          authorization: `Bearer ${token}`,
          'content-type': 'text/plain',
        })
        .catch(() => undefined)
      if (response !== undefined) this.outcomes.set(sub, outcomeOf(response))
      // A runtime that starts again rejects connections at once; the caller waits before it tries again.
      else await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

t.test('Every accepted invocation has one record when processes are killed', { timeout: 3_600_000 }, async (t) => {
  const scene = await openScene(t)
  const control = await openControl(t, scene)
  const chance = chanceOf(seed)
  let runtime = await startProcess(t, scene, control, {})
  const client: Requester = {
    request: (method, path, { body, headers } = {}) => runtime.request(method, path, body, headers),
  }
  const deployed = await deploy(client, { name: 'busy', wasm: await compileCSource(busy) })
  t.equal(deployed.status, 201, deployed.text)
  const callers = new Callers(scene, runtime)
  callers.begin()
  const strikes = { executor: 0, runtime: 0, postgres: 0 }
  const kinds = ['executor', 'runtime', 'postgres'] as const
  const total = effort({ small: 6, full: 90 })
  for (let strike = 0; strike < total; strike++) {
    const kind = kinds[strike % kinds.length] ?? 'executor'
    const enough = callers.count('success') + 5 + chance.below(20)
    await until(
      async () => callers.wrong !== undefined || callers.count('success') >= enough,
      'another success',
      120_000,
    )
    strikes[kind]++
    if (kind === 'executor') killAll(await executorsOf(runtime.pid))
    else if (kind === 'postgres') await scene.postgres.crash()
    else {
      const moduleProcesses = await moduleProcessesOf(runtime.pid)
      await runtime.kill()
      await until(
        async () => !(await readdir('/proc')).some((entry) => moduleProcesses.includes(Number(entry))),
        'the end of the executors',
      )
      callers.runtime = runtime = await startProcess(t, scene, control, {})
    }
  }
  const enough = callers.count('success') + 20
  await until(async () => callers.wrong !== undefined || callers.count('success') >= enough, 'another success', 120_000)
  await callers.end()
  t.equal(callers.wrong, undefined)
  // The runtime writes the ends that Postgres missed once Postgres is back.
  await runtime.stop()

  const records = await scene.rows(
    'select user_id, status, error_message, count(*)::int as n from function_invocations group by 1, 2, 3',
  )
  t.same(
    records.filter(({ n }) => n !== 1),
    [],
    'no invocation has two records',
  )
  const found = new Map(records.map((record) => [String(record['user_id']), record]))
  t.equal(found.size, records.length)
  const lost: string[] = []
  for (const [sub, outcome] of callers.outcomes) {
    const record = found.get(sub)
    found.delete(sub)
    if ((outcome === 'success' || outcome === 'failure') && record === undefined) lost.push(`${sub}: ${outcome}`)
    if (outcome === 'success' && record?.['status'] !== 'success')
      lost.push(`${sub}: a success that is recorded as ${JSON.stringify(record)}`)
    if (outcome === 'failure' && record?.['status'] !== 'error')
      lost.push(`${sub}: a failure that is recorded as ${JSON.stringify(record)}`)
  }
  t.same(lost, [], 'every invocation with a response has a record with the same outcome')
  t.equal(found.size, 0, 'every record belongs to a call')
  const counts = Object.fromEntries(
    (['success', 'failure', 'rejected', 'none'] as const).map((outcome) => [outcome, callers.count(outcome)]),
  )
  t.ok(callers.count('failure') > 0, 'some invocations were killed')
  t.comment(
    `strikes ${JSON.stringify(strikes)}, ${callers.outcomes.size} calls ${JSON.stringify(counts)}, ${records.length} records, seed ${seed}`,
  )
})

t.test('A function that is disabled or deleted under load returns 404 at once', { timeout: 600_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const wasm = command()
  for (let round = 0; round < effort({ small: 4, full: 60 }); round++) {
    if (round % 2 === 0) t.equal((await deploy(tenant, { name: 'brief', wasm })).status, 201)
    const state = { isGone: false }
    const late: number[] = []
    const statuses = new Set<number>()
    const load = Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let after = 0; after < 3;) {
          // A call is late if it begins after the response to the change.
          const isLate = state.isGone
          const { status } = await invoke(tenant, 'brief')
          if (isLate) late.push(status)
          else statuses.add(status)
          if (isLate) after++
        }
      }),
    )
    await until(async () => statuses.has(200))
    const response =
      round % 2 === 0
        ? await tenant.request('PATCH', '/functions/v1/brief', { as: 'service', body: { enabled: false } })
        : await tenant.request('DELETE', '/functions/v1/brief', { as: 'service' })
    t.ok(response.status < 300, response.text)
    state.isGone = true
    await load
    t.same([...new Set(late)], [404], `round ${round}`)
    // Before the change, a busy machine may have no executor in time.
    t.same(
      [...statuses].filter((status) => ![200, 404, 503].includes(status)),
      [],
    )
    if (round % 2 === 0)
      t.equal(
        (await tenant.request('PATCH', '/functions/v1/brief', { as: 'service', body: { enabled: true } })).status,
        200,
      )
  }
})
