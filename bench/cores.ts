// How many requests an installation serves with one core, with two, and so on up to all of the machine, each time with the default
// numbers of runtimes and gateways, and with the load clients on the same cores. What more cores would give is computed from where
// the processors' time goes.
import { execFileSync } from 'node:child_process'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defaultGateways, defaultRuntimes } from '#local/default-counts.ts'
import { startInstallation } from '#test/support/installation.ts'
import { median, noise, type Figures, type Report } from '#bench/figures.ts'
import { startChild } from '#bench/support/child.ts'
import { signToken } from '#bench/support/installed.ts'
import { wire } from '#bench/support/load.ts'
import { openTenant, type OpenTenant } from '#bench/support/peers/scene.ts'
import { cpuOf, processesOf } from '#bench/support/processes.ts'
import { todos } from '#bench/support/rest-scene.ts'
import { sendJson } from '#bench/support/send-json.ts'

/** Runtimes share the tenants, about evenly if there are many. */
const tenants = 16
const clients = 4
const connectionsOfEach = 4
const rounds = 5
const roundMilliseconds = 2_000
const warmUpMilliseconds = 3_000
/** The numbers of cores that are compared. Those that the machine does not have are computed. */
const comparedCores = [1, 2, 4]

type Operation = 'get' | 'insert'

/** The requests per second with a number of cores, and the microseconds of processor time of a request, by part. */
interface Measured {
  cores: number
  rps: number[]
  cpu: Record<string, number>
}

export async function figures(report: Report): Promise<Figures> {
  const available = availableParallelism()
  const all: Record<Operation, Measured[]> = { get: [], insert: [] }
  try {
    for (const cores of comparedCores.filter((count) => count <= available)) {
      useCores(cores)
      for (const [operation, measured] of Object.entries(await measureInstallation(cores, report)))
        all[operation as Operation].push(measured)
    }
  } finally {
    useCores(available)
  }
  return { ...toFigures('get', all.get), ...toFigures('insert', all.insert) }
}

/** Restricts this process, and those that it starts from now on, to the first cores. */
function useCores(cores: number): void {
  execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', `0-${cores - 1}`, String(process.pid)])
}

async function measureInstallation(cores: number, report: Report): Promise<Record<Operation, Measured>> {
  const directory = await mkdtemp(join(import.meta.dirname, '..', '.tenantry-bench-'))
  // The services' user enters it.
  await chmod(directory, 0o711)
  const [runtimes, gateways] = [defaultRuntimes(cores), defaultGateways(cores)]
  const installation = await startInstallation({ dataDirectory: join(directory, 'data'), runtimes, gateways })
  try {
    const requests = { get: [] as Buffer[], insert: [] as Buffer[] }
    for (let n = 0; n < tenants; n++) {
      const { get, insert } = await requestsOf(await openTenant(installation, `cores-${n}`))
      requests.get.push(get)
      requests.insert.push(insert)
    }
    const processes = await processesOf(installation, gateways)
    const port = Number(new URL(installation.gatewayUrl).port)
    const measure = async (operation: Operation): Promise<Measured> => {
      const send = (milliseconds: number) =>
        sendAll(port, requests[operation], operation === 'get' ? 200 : 201, milliseconds)
      await send(warmUpMilliseconds)
      const rps: number[] = []
      const cpu: Record<string, number>[] = []
      for (let round = 0; round < rounds; round++) {
        const before = await cpuOf(processes)
        const sent = await send(roundMilliseconds)
        const after = await cpuOf(processes)
        rps.push(sent.rps)
        const parts = Object.keys(after).map((part) => [
          part,
          ((after[part] ?? 0) - (before[part] ?? 0)) / sent.requests,
        ])
        cpu.push({ ...(Object.fromEntries(parts) as Record<string, number>), client: sent.cpu / sent.requests })
      }
      const each = Object.keys(cpu[0] ?? {}).map((part) => [part, median(cpu.map((one) => one[part] ?? 0))])
      const measured = { cores, rps, cpu: Object.fromEntries(each) as Record<string, number> }
      report(
        `${operation}, ${cores} cores, ${runtimes} runtimes, ${gateways} gateways: ${median(rps).toFixed(0)}/s; ${partsOf(measured)}`,
      )
      return measured
    }
    return { get: await measure('get'), insert: await measure('insert') }
  } finally {
    await installation.stop()
    await rm(directory, { recursive: true, force: true })
  }
}

/** Makes a collection with a row, and returns requests of its owner. */
async function requestsOf(tenant: OpenTenant): Promise<Record<Operation, Buffer>> {
  const service = { token: tenant.secretKey }
  await sendJson(tenant.at(service, '/rest/v1/schemas'), 'POST', 201, todos)
  await sendJson(tenant.at(service, '/admin/reload-schemas'), 'POST', 200, {})
  const owner = { token: signToken(tenant.jwtSecret, 'ada') }
  const row = { title: 'a title', done: false, rank: 1, owner_id: 'ada' }
  const { path, headers } = tenant.at(owner, '/rest/v1/todos')
  const [created] = [await sendJson(tenant.at(owner, '/rest/v1/todos'), 'POST', 201, row)].flat() as { id: string }[]
  const body = JSON.stringify(row)
  const content = { 'content-type': 'application/json', 'content-length': String(body.length) }
  return {
    get: wire('GET', `${path}/${created?.id}`, headers),
    insert: Buffer.concat([wire('POST', path, { ...headers, ...content }), Buffer.from(body)]),
  }
}

/** Sends requests of several clients, each of a process of its own. */
async function sendAll(port: number, requests: readonly Buffer[], status: number, milliseconds: number) {
  const file = new URL('./support/reading.ts', import.meta.url).pathname
  const outputs = await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      // Each begins with another tenant.
      const turn = (client * requests.length) / clients
      const own = [...requests.slice(turn), ...requests.slice(0, turn)]
      const environment = { REQUESTS: own.map((request) => request.toString('base64')).join(' ') }
      const args = [port, connectionsOfEach, milliseconds, status].map(String)
      return (await startChild(file, args, environment)).firstOutput as Record<'rps' | 'requests' | 'cpu', number>
    }),
  )
  const sum = (key: 'rps' | 'requests' | 'cpu') => outputs.reduce((total, output) => total + output[key], 0)
  return { rps: sum('rps'), requests: sum('requests'), cpu: sum('cpu') }
}

/** Returns the median CPU time of each part, as a text. */
function partsOf({ cpu }: Measured): string {
  return Object.entries(cpu)
    .map(([part, time]) => `${part} ${time.toFixed(0)}`)
    .join(' + ')
}

/**
 * Computes the requests per second with more cores: as many as the processors' time allows, unless all gateways or all runtimes
 * together, which are single threads, have less time than that.
 */
function modelled({ cores: measuredCores, rps, cpu }: Measured, cores: number): number {
  const [gateway, runtime] = [cpu['gateway'] ?? 0, cpu['runtime'] ?? 0]
  const byCores = (median(rps) * cores) / measuredCores
  return Math.min(byCores, (1e6 * defaultGateways(cores)) / gateway, (1e6 * defaultRuntimes(cores)) / runtime)
}

function toFigures(name: string, measured: readonly Measured[]): Figures {
  const last = measured.at(-1)
  if (last === undefined) return {}
  const figures: Figures = {}
  const add = (key: string, value: number, floor: number, rest: { noise?: number; parts?: string; target: string }) => {
    figures[key] = { value, unit: '/s', floor, ratio: value / floor, ...rest }
  }
  for (const [at, one] of measured.entries()) {
    const key = `${name}_${one.cores}_cores`
    const before = measured[at - 1]
    const rest = { noise: noise(one.rps), parts: `µs: ${partsOf(one)}` }
    if (before === undefined) figures[key] = { value: median(one.rps), unit: '/s', ...rest, target: 'stated' }
    else add(key, median(one.rps), median(before.rps), { ...rest, target: '≥ 1.8 of half the cores' })
  }
  for (const cores of comparedCores.filter((count) => count > last.cores))
    add(`${name}_${cores}_cores_model`, modelled(last, cores), median(last.rps), { target: '≥ 1.8 of half the cores' })
  return figures
}
