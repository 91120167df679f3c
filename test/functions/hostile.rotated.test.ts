// Hostile modules over HTTP. The runtime rejects each by name or stops it within its limits, continues to serve another
// tenant, and leaves no process. Then a real module, cut and with bits flipped in each of its parts.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { compileC } from '#examples/functions/compile-native.ts'
import { dataLimit } from '#tenant-runtime/functions/executor/confinement.ts'
import { Executor } from '#tenant-runtime/functions/executor/executor.ts'
import { checkModule } from '#tenant-runtime/functions/module/check-module.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startRuntime, type ApiResponse, type TestTenant } from '#test/support/runtime.ts'
import { deploy, executorsOf, moduleProcessesOf, invoke } from './support/deployed.ts'
import type { Ending, Hostile } from './support/hostile-module-parts.ts'
import { hostile } from './support/hostile-modules.ts'
import { command } from './support/wasm.ts'

const megabyte = 1024 * 1024
const maxMemory = 16 * megabyte
/**
 * The number of modules that run at the same time. It is small, so that those waiting for their deadline do not delay the
 * rest.
 */
const lanes = 3
const rounds = effort({ small: 1, full: 20 })
/** The small run takes every second module. The seed chooses which. */
const stride = effort({ small: 2, full: 1 })
const chosen = hostile.filter((_, at) => at % stride === seed % stride)

/** Returns a process's peak memory, and the memory that counts against its limit, in bytes. */
async function memoryOf(pid: number): Promise<{ peak: number; data: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const of = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1024
  return { peak: of('VmHWM'), data: of('VmData') }
}

/** Polls for the peak memory, in bytes, of all executors of this process until `end`. */
class MemoryWatch {
  peak = 0
  #isOver = false
  readonly #watching = this.#watch()

  async end(): Promise<number> {
    this.#isOver = true
    await this.#watching
    return this.peak
  }

  async #watch(): Promise<void> {
    while (!this.#isOver) {
      for (const pid of await moduleProcessesOf(process.pid))
        this.peak = Math.max(this.peak, (await memoryOf(pid)).peak)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

/** Deploys a module, invokes it and deletes it. */
async function runHostile(
  tenant: TestTenant,
  { wasm, ends, input }: Pick<Hostile, 'wasm' | 'ends' | 'input'>,
  name = 'hostile',
): Promise<{ response: ApiResponse; ending: Ending | undefined; milliseconds: number; timeout: number }> {
  // A module that ends by itself has time for that on a busy machine.
  const timeout = [ends].flat().includes('stopped') ? 1 : 60
  const deployed = await deploy(tenant, { name, wasm: wasm(), config: { timeout, max_memory: maxMemory } })
  if (deployed.status !== 201)
    return {
      response: deployed,
      ending: deployed.status >= 400 && deployed.status < 500 ? 'rejected' : undefined,
      milliseconds: 0,
      timeout,
    }
  const begin = performance.now()
  const response = await invoke(tenant, name, input)
  const milliseconds = performance.now() - begin
  await tenant.request('DELETE', `/functions/v1/${name}`, { as: 'service' })
  const endings: Partial<Record<number, Ending>> = { 200: 'harmless', 500: 'failed', 504: 'stopped' }
  return { response, ending: endings[response.status], milliseconds, timeout }
}

const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

t.test('A corpus of hostile modules', { timeout: 3_600_000 }, async (t) => {
  t.ok(hostile.length >= 60, `${hostile.length} modules`)
  t.equal(new Set(hostile.map(({ what }) => what)).size, hostile.length)
  const idle = await Executor.start()
  const before = await memoryOf(idle.pid ?? 0)
  idle.kill()
  const overruns: number[] = []
  let peak = 0
  await t.test('Each module ends as expected, and the other tenant is served', async (t) => {
    const runtime = await startRuntime(t)
    const tenant = await runtime.addTenant({ name: 'hostile' })
    const neighbour = await runtime.addTenant({ name: 'neighbour' })
    t.equal((await deploy(neighbour, { name: 'calm', wasm: command(), config: { timeout: 60 } })).status, 201)
    const watch = new MemoryWatch()
    t.teardown(() => watch.end())
    for (let round = 1; round <= rounds; round++) {
      const remaining = [...chosen]
      await Promise.all(
        Array.from({ length: lanes }, async (_, lane) => {
          for (let next = remaining.shift(); next !== undefined; next = remaining.shift()) {
            const { what, ends, message = /(?:)/ } = next
            const { response, ending, milliseconds, timeout } = await runHostile(tenant, next, `hostile-${lane}`)
            t.ok(
              ending !== undefined && [ends].flat().includes(ending),
              `${what}: ${ending ?? 'something else'}, ${response.status} ${response.text.slice(0, 200)}`,
            )
            if (ending !== 'harmless') t.match(response.json()['message'], message, what)
            if (ending === 'stopped') overruns.push(milliseconds - timeout * 1_000)
            const calm = await invoke(neighbour, 'calm')
            t.equal(calm.status, 200, `after ${what}: the neighbour's function, ${calm.text}`)
          }
        }),
      )
      t.same((await neighbour.request('GET', '/rest/v1/functions?select=name', { as: 'service' })).list(), [
        { name: 'calm' },
      ])
    }
    peak = await watch.end()
    const records = await tenant.rows(`select count(*)::int as n from "${tenant.id}".function_invocations`)
    t.same(records, [{ n: 0 }], 'records went with their functions')
  })
  t.same(await executorsOf(process.pid), [], 'no executor remains')
  const max = 1.1 * (before.peak + dataLimit(maxMemory) - before.data)
  t.ok(
    peak > 0 && peak <= max,
    `an executor had ${Math.round(peak / megabyte)} MB at most, ${Math.round(max / megabyte)} MB may be`,
  )
  const inMedian = `${median(overruns).toFixed(0)} ms beyond the deadline in the median`
  const times = `${overruns.length} stopped, ${inMedian}, ${Math.max(...overruns).toFixed(0)} ms at most`
  t.comment(`${rounds} rounds of ${chosen.length}: ${times}; ${Math.round(peak / megabyte)} MB`)
  if (rounds > 1) t.ok(median(overruns) <= 250, times)
})

t.test('A real module that is cut or has flipped bits is rejected or stopped', { timeout: 3_600_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const whole = await compileC(join(import.meta.dirname, 'support', 'wasi-basics.c'))
  const { sections } = checkModule(whole)
  const endings = new Map<string, number>()
  const runChanged = async (wasm: Uint8Array<ArrayBuffer>, what: string) => {
    const { response, ending } = await runHostile(tenant, { wasm: () => wasm, ends: 'stopped' })
    endings.set(ending ?? 'none', (endings.get(ending ?? 'none') ?? 0) + 1)
    if (ending === undefined) t.fail(`${what}: ${response.status} ${response.text}`)
  }
  for (const { id, begin, end, content } of sections) {
    for (const at of new Set([begin, begin + 1, content, content + 1, Math.floor((content + end) / 2), end - 1])) {
      const response = await deploy(tenant, { name: 'hostile', wasm: whole.slice(0, at) })
      // A module that is cut where a section begins may be valid by chance.
      t.ok(
        response.status === 400 || (response.status === 201 && at === begin),
        `section ${id} cut at ${at}: ${response.text}`,
      )
      if (response.status === 201) await tenant.request('DELETE', '/functions/v1/hostile', { as: 'service' })
    }
    for (const at of [begin, begin + 1, content, Math.min(content + 1, end - 1)]) {
      const changed = whole.slice()
      changed[at] = (changed[at] ?? 0) ^ 0x80
      await runChanged(changed, `section ${id}, byte ${at}`)
    }
  }
  const flips = fc.sample(
    fc.record({
      section: fc.nat(sections.length - 1),
      position: fc.double({ min: 0, max: 1, noNaN: true }),
      bit: fc.nat(7),
    }),
    { seed, numRuns: effort({ small: 40, full: 2_000 }) },
  )
  for (const { section, position, bit } of flips) {
    const { begin, end } = sections[section] ?? { begin: 0, end: 1 }
    const at = begin + Math.floor(position * (end - begin - 1))
    const changed = whole.slice()
    changed[at] = (changed[at] ?? 0) ^ (1 << bit)
    await runChanged(changed, `bit ${bit} of byte ${at}`)
  }
  t.notOk(endings.has('none'))
  t.equal(
    (await deploy(tenant, { name: 'whole', wasm: whole, config: { environment: { WISH: 'arguments' } } })).status,
    201,
  )
  t.equal((await invoke(tenant, 'whole')).text, 'whole\n(end)\n', 'the whole one runs')
  t.comment(`${JSON.stringify(Object.fromEntries(endings))}, seed ${seed}`)
})
