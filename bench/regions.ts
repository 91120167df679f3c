// The requests, creates and changes of a region's tenants while the Postgres of another region is stopped or silent, compared with the
// time in which both regions work. The clients and the changes of the other region's tenants are the same in all periods.
import { setTimeout as sleep } from 'node:timers/promises'
import { median, noise, quantile, type Figure, type Figures, type Report } from '#bench/figures.ts'
import { startSteadyLoad } from '#bench/support/steady-load.ts'
import { otherRegion } from '#test/support/other-region.ts'
import { startTwoRegions, type Owner, type TwoRegions } from '#test/regions/support/two-regions.ts'

const rounds = 3
const existing = 10
const requestsPerSecond = 60
const changes = 8
const betweenChangesMs = 500
const waitSeconds = 60
const returnMs = 300_000

/** The times of one region's tenants during a period, in milliseconds, and their failed requests. */
interface Period {
  request: number[]
  create: number[]
  rename: number[]
  failed: number
}

export async function figures(report: Report): Promise<Figures> {
  const teardowns: (() => unknown)[] = []
  try {
    const regions = await startTwoRegions({ teardown: (work) => void teardowns.push(work) }, waitSeconds)
    return await measure(regions, report)
  } finally {
    for (const work of teardowns.reverse()) await work()
  }
}

async function measure(regions: TwoRegions, report: Report): Promise<Figures> {
  const here = [await regions.create('here-0', 'local'), await regions.create('here-1', 'local')]
  const there: Owner[] = []
  for (let n = 0; n < existing; n++) there.push(await regions.create(`there-${n}`, otherRegion))
  const isOver = new AbortController()
  const clients = regions.sendRequests(there, isOver.signal)
  const works = { name: 'works', begin: () => Promise.resolve(), end: () => Promise.resolve() }
  const periods = new Map<string, Period[]>()
  for (let round = 0; round < rounds; round++) {
    for (const { name, begin, end } of [works, ...regions.failures]) {
      await begin()
      const prefix = `${name.replaceAll(' ', '-')}-${round}`
      const requested = await regions.requestChanges(there, prefix)
      const period = await measurePeriod(regions, here, prefix)
      await end()
      await regions.untilReady([...requested, ...there.map(({ id }) => id)], returnMs)
      for (const id of requested)
        await regions.call('DELETE', `/v1/tenants/${id}?purge=true`, undefined, { prefer: 'wait=60' })
      report(`${name}: ${describe(period)}`)
      periods.set(name, [...(periods.get(name) ?? []), period])
    }
  }
  isOver.abort()
  await clients
  return toFigures(periods)
}

/** Measures requests, creates and changes of the first region. */
async function measurePeriod(regions: TwoRegions, here: readonly Owner[], prefix: string): Promise<Period> {
  const port = Number(new URL(regions.gatewayUrl).port)
  const load = startSteadyLoad(
    here.map(({ name, key }) => ({
      method: 'GET',
      location: { port, path: `/t/${name}/storage/v1/bucket`, headers: { authorization: `Bearer ${key}` } },
    })),
    requestsPerSecond,
  )
  const period: Period = { request: [], create: [], rename: [], failed: 0 }
  for (let n = 0; n < changes; n++) {
    await sleep(betweenChangesMs)
    let owner: Owner | undefined
    period.create.push(await timed(async () => (owner = await regions.create(`${prefix}-here-${n}`, 'local'))))
    await sleep(betweenChangesMs)
    if (owner !== undefined) {
      const { id } = owner
      const created = owner
      period.rename.push(await timed(() => regions.rename(created, `${prefix}-renamed-${n}`)))
      await regions.call('DELETE', `/v1/tenants/${id}?purge=true`)
    }
  }
  await load.stop()
  period.request = load.samples.map(({ milliseconds }) => milliseconds)
  period.failed = load.samples.filter(({ status }) => status !== 200).length
  return period
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}

function describe({ request, create, rename, failed }: Period): string {
  const requests = `${request.length} requests, ${failed} failed, p99 ${quantile(request, 0.99).toFixed(0)} ms`
  return `${requests}; create ${median(create).toFixed(0)}, rename ${median(rename).toFixed(0)} ms`
}

function toFigures(periods: ReadonlyMap<string, readonly Period[]>): Figures {
  const works = periods.get('works') ?? []
  const figures: Figures = {}
  for (const [name, ofName] of periods) {
    if (name === 'works') continue
    const suffix = name.replace('is ', '')
    const figure = (key: string, read: (period: Period) => number, target: string) => {
      const floors = works.map(read)
      const value = median(ofName.map(read))
      const floor = median(floors)
      figures[`${key}_${suffix}`] = {
        ...{ value, unit: 'ms', floor, ratio: value / floor, target },
        noise: noise(floors),
      } satisfies Figure
    }
    figure('request_p50', ({ request }) => quantile(request, 0.5), 'noise')
    figure('request_p99', ({ request }) => quantile(request, 0.99), 'noise')
    figure('create_p50', ({ create }) => median(create), 'noise')
    figure('create_max', ({ create }) => Math.max(...create), 'noise')
    figure('rename_p50', ({ rename }) => median(rename), 'noise')
    figures[`failed_requests_${suffix}`] = {
      value: ofName.reduce((sum, { failed }) => sum + failed, 0),
      unit: `of ${ofName.reduce((sum, { request }) => sum + request.length, 0)}`,
      target: '0',
    }
  }
  return figures
}
