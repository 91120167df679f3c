// Functions: invocations compared with a minimal server in front of the same executors, in alternating rounds; cold starts;
// the delay that a deadline causes for the next request; the memory of deployed functions that do not run; and the effect
// of hostile functions on a neighbouring tenant.
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { command as handmade, constant, drop, forever, grow } from '#test/functions/support/wasm.ts'
import { signToken } from '#bench/support/installed.ts'
import { median, type Figures, type Report } from '#bench/figures.ts'
import { event, openScene, type FunctionScene } from '#bench/support/function-scene.ts'
import { inTurn, reportRounds } from '#bench/support/in-turn.ts'
import { load } from '#bench/support/load.ts'
import { residentBytes } from '#bench/support/memory.ts'

const connections = 16
/** The number of executors that one tenant has in a runtime. */
const executors = 4
const rounds = 7
const roundMilliseconds = 2_000
const warmUpMilliseconds = 3_000
const coldStarts = 21
const deadlines = 7
const deployed = 1_000
const neighbourRounds = 5

export async function figures(report: Report): Promise<Figures> {
  const scratch = await mkdtemp(join(import.meta.dirname, '..', '.tenantry-bench-'))
  const scene = await openScene(scratch)
  try {
    return {
      ...(await throughput(scene, report)),
      ...(await cold(scene, report)),
      ...(await killed(scene, report)),
      ...(await idle(scene, report)),
      ...(await neighbour(scene, report)),
    }
  } finally {
    await scene.stop()
    await rm(scratch, { recursive: true, force: true })
  }
}

export async function throughput(scene: FunctionScene, report: Report): Promise<Figures> {
  await scene.deploy('warm', scene.command())
  const bare = await scene.startBare(executors)
  try {
    const ways = {
      runtime: {
        port: scene.runtimePort,
        request: scene.request(scene.tenant, scene.token, 'POST', '/functions/v1/invoke/warm', event),
      },
      bare: { port: bare.port, request: scene.request(scene.tenant, scene.token, 'POST', '/', event) },
    }
    for (const way of Object.values(ways)) await load({ ...way, connections, milliseconds: warmUpMilliseconds })
    const many = await inTurn(ways, rounds, (way) => load({ ...way, connections, milliseconds: roundMilliseconds }))
    const alone = await inTurn(ways, rounds, (way) =>
      load({ ...way, connections: 1, milliseconds: roundMilliseconds / 4 }),
    )
    const of = (results: typeof many, what: 'rps' | 'p50' | 'p99') =>
      Object.fromEntries(Object.entries(results).map(([way, each]) => [way, each.map((result) => result[what])]))
    reportRounds(report, `invocations, ${connections} connections, /s`, of(many, 'rps'))
    reportRounds(report, `invocations, ${connections} connections, p99 in ms`, of(many, 'p99'), 2)
    reportRounds(report, 'invocations one after the other, p50 in ms', of(alone, 'p50'), 2)
    const figure = (results: typeof many, what: 'rps' | 'p50' | 'p99', unit: string, target: string) => {
      const [value, floor] = [
        median((results['runtime'] ?? []).map((result) => result[what])),
        median((results['bare'] ?? []).map((result) => result[what])),
      ]
      return { value, floor, ratio: value / floor, unit, target }
    }
    return {
      invoke_rps: figure(many, 'rps', '/s', '≥ 0.5 of the floor'),
      invoke_p99_ms: figure(many, 'p99', 'ms', '≤ 25'),
      warm_p50_ms: figure(alone, 'p50', 'ms', '≤ 2 more than the floor'),
    }
  } finally {
    await bare.stop()
  }
}

/** Measures a function that has never run here, while no executor exists and none is being started. */
export async function cold(scene: FunctionScene, report: Report): Promise<Figures> {
  const times: number[] = []
  for (let n = 0; n < coldStarts; n++) {
    await scene.deploy(`cold-${n}`, scene.command())
    await scene.endExecutors()
    const begin = performance.now()
    await scene.invoke(`cold-${n}`)
    times.push(performance.now() - begin)
  }
  report(`cold starts, ms: ${times.map((time) => time.toFixed(0)).join(', ')}`)
  return { cold_p50_ms: { value: median(times), unit: 'ms', target: '≤ 80' } }
}

/** Measures from the deadline on, while all of a tenant's executors are stuck and one request waits. */
export async function killed(scene: FunctionScene, report: Report): Promise<Figures> {
  const timeout = 1
  await scene.deploy(
    'stuck',
    handmade({
      memory: [0, 0x80, 0x10],
      code: [...constant(0), ...constant(1), ...constant(64 * 1024 * 1024), 0xfc, 0x0b, 0x00, ...forever],
    }),
    { timeout, max_memory: 256 * 1024 * 1024 },
  )
  await scene.deploy('next', scene.command())
  const next: number[] = []
  const gone: number[] = []
  for (let round = 0; round < deadlines; round++) {
    await scene.endExecutors()
    // All executors of the tenant exist then, and a spare one.
    await Promise.all(Array.from({ length: executors }, () => scene.invoke('next')))
    const before = await scene.executors()
    const begin = performance.now()
    const stuck = Array.from({ length: executors }, () =>
      scene.send(scene.tenant, scene.token, 'POST', '/functions/v1/invoke/stuck', event),
    )
    await new Promise((resolve) => setTimeout(resolve, 300))
    await scene.invoke('next')
    next.push(performance.now() - begin - timeout * 1000)
    for (const { status } of await Promise.all(stuck))
      if (status !== 504) throw new Error(`The invocation of a stuck function returned ${status}, not 504`)
    for (let remaining = before.length; remaining > before.length - executors;) {
      const now = new Set(await scene.executors())
      remaining = before.filter((pid) => now.has(pid)).length
    }
    gone.push(performance.now() - begin - timeout * 1000)
  }
  report(
    `after the deadline, ms: the next is served ${next.map((time) => time.toFixed(0)).join(', ')}; ` +
      `the killed are gone ${gone.map((time) => time.toFixed(0)).join(', ')}`,
  )
  return {
    kill_to_next_ms: { value: median(next), unit: 'ms', target: '≤ 50' },
    kill_to_gone_ms: { value: median(gone), unit: 'ms', target: '≤ 250' },
  }
}

/**
 * Measures the growth of the runtime's memory after many functions were deployed, each ran once, and no executor remains.
 */
export async function idle(scene: FunctionScene, report: Report): Promise<Figures> {
  const pid = await scene.runtimePid()
  const begin = performance.now()
  // The first deployments load code once; that cost is not part of a function's.
  for (let n = 0; n < 50; n++) await scene.deploy(`first-${n}`, scene.command())
  await scene.endExecutors()
  const before = await residentBytes(pid)
  const names = Array.from({ length: deployed }, (_, n) => `idle-${n}`).values()
  await Promise.all(
    Array.from({ length: executors }, async () => {
      for (const name of names) {
        await scene.deploy(name, scene.command())
        await scene.invoke(name)
      }
    }),
  )
  await scene.endExecutors()
  const grown = ((await residentBytes(pid)) - before) / 1e6
  report(
    `${deployed} functions deployed and run in ${((performance.now() - begin) / 1000).toFixed(0)} s: ` +
      `${(before / 1e6).toFixed(0)} MB before, ${grown.toFixed(0)} MB more then`,
  )
  return { idle_1000_mb: { value: grown, unit: 'MB', target: '≤ 50' } }
}

/** Modules that spin, that allocate and write all the memory they may have, and that fill tables. */
const hostile = {
  spinning: handmade({ code: forever }),
  growing: handmade({
    memory: [0, 1],
    // Grows by a page and writes every byte of it, for ever.
    locals: [[1, 0x7f]],
    code: [
      0x03,
      0x40,
      ...constant(16),
      ...grow,
      0x22,
      0x00,
      ...constant(0),
      0x4a,
      0x04,
      0x40,
      0x20,
      0x00,
      ...constant(16),
      0x74,
      ...constant(1),
      ...constant(16 * 65_536),
      0xfc,
      0x0b,
      0x00,
      0x0b,
      0x0c,
      0x00,
      0x0b,
    ],
  }),
  tables: handmade({
    tables: [[0, 1]],
    code: [
      0x03,
      0x40,
      0xd0,
      0x70,
      ...constant(50_000),
      0xfc,
      0x0f,
      0x00,
      drop,
      0xd0,
      0x70,
      ...constant(1),
      0xfc,
      0x0f,
      0x00,
      drop,
      0x0c,
      0x00,
      0x0b,
    ],
  }),
}

export async function neighbour(scene: FunctionScene, report: Report): Promise<Figures> {
  for (const [name, wasm] of Object.entries(hostile)) await scene.deploy(name, wasm, { timeout: 2 })
  const token = signToken(scene.neighbour.jwtSecret, 'ben')
  const request = scene.request(scene.neighbour, token, 'GET', '/rest/v1/todos?limit=20&order=title')
  const measure = (milliseconds: number) => load({ port: scene.runtimePort, request, connections: 4, milliseconds })
  await measure(warmUpMilliseconds)
  const measured = await inTurn(
    { quiet: false, 'next to hostile functions': true },
    neighbourRounds,
    async (isHostile) => {
      const over = new AbortController()
      const attacks = isHostile
        ? Object.keys(hostile).flatMap((name) => Array.from({ length: 8 }, () => attack(scene, name, over.signal)))
        : []
      // By then all executors are busy, or the last are gone.
      await new Promise((resolve) => setTimeout(resolve, 1_000))
      const { p99 } = await measure(4_000)
      over.abort()
      await Promise.all(attacks)
      await scene.endExecutors()
      return p99
    },
  )
  reportRounds(report, 'REST next to functions, p99 in ms', measured, 2)
  const [quiet, alongside] = [median(measured['quiet'] ?? []), median(measured['next to hostile functions'] ?? [])]
  return { neighbour_p99_ratio: { value: alongside / quiet, unit: '×', target: '≤ 2' } }
}

/** Invokes the function repeatedly until the signal aborts. */
async function attack(scene: FunctionScene, name: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const { status } = await scene.send(scene.tenant, scene.token, 'POST', `/functions/v1/invoke/${name}`, event)
    if (status < 500) throw new Error(`The invocation of the function ${name} returned ${status}, not an error`)
  }
}
