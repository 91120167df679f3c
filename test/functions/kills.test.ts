// Executors, runtime and Postgres killed under load: each invocation that was accepted has its one record, none is there
// twice, and the rest goes on. And a function that is disabled or deleted under load is gone at once.
import { readdir } from 'node:fs/promises'
import t from 'tap'
import { compileCSource } from '#examples/functions/compile-native.ts'
import { chanceOf } from '#test/simulation/chance.ts'
import { openControl, startProcess, type RuntimeProcess } from '#test/storage/support/runtime-process.ts'
import { openScene, type Scene } from '#test/storage/support/scene.ts'
import { effort, seed } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import { signToken, startRuntime, type ApiResponse } from '#test/support/runtime.ts'
import { deploy, executorsOf, attachedContainersOf, invoke, killAll, type Asker } from './support/deployed.ts'
import { command } from './support/wasm.ts'

const workers = 6

/** Takes some milliseconds, so that a strike hits it in its middle. */
const busy = `
  #include <stdio.h>
  int main(void) {
    volatile unsigned sum = 0;
    for (unsigned n = 0; n < 4000000; n++) sum += n;
    printf("%u", sum);
    return 0;
  }
`

/** What came of one invocation to whoever made it; `none`: no answer. */
type Came = 'success' | 'failure' | 'refused' | 'none'

function cameOf({ status, text }: ApiResponse): Came {
  if (status === 200) return 'success'
  // Its process was killed: it was accepted, and has a record.
  if (status === 500 && text.includes('HOST_FUNCTION_ERROR')) return 'failure'
  // Nothing was begun, or nobody can say: the database was away, no executor could be started.
  if (status === 503) return 'refused'
  throw new Error(`an answer that was not to come: ${status} ${text}`)
}

/** Callers that go on whatever happens; each call is a user of its own, by which its record is found. */
class Callers {
  readonly came = new Map<string, Came>()
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

  count(wanted: Came): number {
    return [...this.came.values()].filter((came) => came === wanted).length
  }

  async #call(): Promise<void> {
    while (!this.#isOver) {
      const sub = `call-${this.came.size}`
      this.came.set(sub, 'none')
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
      if (response !== undefined) this.came.set(sub, cameOf(response))
      // A runtime that is being started again refuses connections faster than anybody should ask for them.
      else await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

t.test('executors, runtime and Postgres are killed under load', { timeout: 3_600_000 }, async (t) => {
  const scene = await openScene(t)
  const control = await openControl(t, scene)
  const chance = chanceOf(seed)
  let runtime = await startProcess(t, scene, control, {})
  const asker: Asker = {
    request: (method, path, { body, headers } = {}) => runtime.request(method, path, body, headers),
  }
  const deployed = await deploy(asker, { name: 'busy', wasm: await compileCSource(busy) })
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
      'nothing was served any more',
      120_000,
    )
    strikes[kind]++
    if (kind === 'executor') killAll(await executorsOf(runtime.pid))
    else if (kind === 'postgres') await scene.postgres.crash()
    else {
      const attachedContainers = await attachedContainersOf(runtime.pid)
      await runtime.kill()
      await until(
        async () => !(await readdir('/proc')).some((entry) => attachedContainers.includes(Number(entry))),
        'executors outlived their runtime',
      )
      callers.runtime = runtime = await startProcess(t, scene, control, {})
    }
  }
  const enough = callers.count('success') + 20
  await until(
    async () => callers.wrong !== undefined || callers.count('success') >= enough,
    'nothing was served any more',
    120_000,
  )
  await callers.end()
  t.equal(callers.wrong, undefined)
  // Ends that Postgres was away for are written when it is back.
  await runtime.stop()

  const records = await scene.rows(
    'select user_id, status, error_message, count(*)::int as n from function_invocations group by 1, 2, 3',
  )
  t.same(
    records.filter(({ n }) => n !== 1),
    [],
    'none is there twice',
  )
  const found = new Map(records.map((record) => [String(record['user_id']), record]))
  t.equal(found.size, records.length)
  const lost: string[] = []
  for (const [sub, came] of callers.came) {
    const record = found.get(sub)
    found.delete(sub)
    if ((came === 'success' || came === 'failure') && record === undefined) lost.push(`${sub}: ${came}`)
    if (came === 'success' && record?.['status'] !== 'success')
      lost.push(`${sub}: a success that is recorded as ${JSON.stringify(record)}`)
    if (came === 'failure' && record?.['status'] !== 'error')
      lost.push(`${sub}: a failure that is recorded as ${JSON.stringify(record)}`)
  }
  t.same(lost, [], 'every invocation that was answered has its record, as it ended')
  t.equal(found.size, 0, 'and none is there that nobody made')
  const counts = Object.fromEntries(
    (['success', 'failure', 'refused', 'none'] as const).map((came) => [came, callers.count(came)]),
  )
  t.ok(callers.count('failure') > 0, 'some were hit')
  t.comment(
    `strikes ${JSON.stringify(strikes)}, ${callers.came.size} calls ${JSON.stringify(counts)}, ${records.length} records, seed ${seed}`,
  )
})

t.test('disabled or deleted under load: 404 at once', { timeout: 600_000 }, async (t) => {
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
          // Begun when the answer to the change was there already.
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
    t.same(
      [...statuses].filter((status) => status !== 200 && status !== 404),
      [],
    )
    if (round % 2 === 0)
      t.equal(
        (await tenant.request('PATCH', '/functions/v1/brief', { as: 'service', body: { enabled: true } })).status,
        200,
      )
  }
})
