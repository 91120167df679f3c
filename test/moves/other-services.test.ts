// The ends of a move between a single database and a cluster of the tenant's own, on several hosts: which services and files are removed
// at its end, and when it waits for a host.
import t from 'tap'
import { otherDestination, otherOrigin } from '#control-plane/moves/other-services.ts'
import type { MoveDeps } from '#control-plane/moves/move-deps.ts'
import type { MoveJob } from '#control-plane/moves/move.ts'
import { rejectSilent } from '#control-plane/moves/silent-services.ts'
import type { Region } from '#control-plane/reconcile/region.ts'
import type { OwnIsolation } from '#control-plane/stacks/isolation.ts'

const { signal } = new AbortController()
const tenantId = 't_0123456789abcdef0123'
const single = 'database-per-tenant'
const cluster = 'cluster-per-tenant'
const placement = { postgres: 'a', runtime: 'a', 'postgres-1': 'b', 'postgres-2': 'c', 'runtime-1': 'b' }

interface Surroundings {
  spansHosts?: boolean
  /** Hosts that do not respond, and the states of hosts. */
  silent?: string[]
  states?: Record<string, 'lost' | 'draining'>
}

/** Returns the two ends of a move, and the calls that they make. */
function endsOf(
  [from, to]: readonly [OwnIsolation, OwnIsolation],
  job: Partial<MoveJob>,
  { spansHosts = true, silent = [], states = {} }: Surroundings = {},
) {
  const calls: string[] = []
  const note =
    (what: string) =>
    (_job: unknown, isolation: unknown): Promise<void> => {
      calls.push(`${what} ${String(isolation)}`)
      return Promise.resolve()
    }
  const region = {
    spansHosts,
    config: { id: 'north' },
    engine: {
      hostIds: ['a', 'b', 'c'],
      isDown: (id: string) => silent.includes(id),
      observe: () => Promise.resolve({ containers: [], networks: [], volumes: [], unlabelledVolumes: [] }),
    },
    home: () => ({}),
    runtimeUrls: () => ['http://one', 'http://two'],
    closeCluster: async ({ isolation }: { isolation: string }) => void calls.push(`close ${isolation}`),
    removeServices: async (_id: string, isolation: string) => {
      calls.push(`remove ${isolation}`)
      return silent
    },
  }
  const deps = {
    regions: new Map([['north', region]]),
    services: {
      placements: {
        of: () => Promise.resolve({ placement, reserved: {} }),
        states: () => Promise.resolve(new Map(Object.entries(states))),
      },
    },
    ledger: { endServices: note('end'), dropServices: note('drop'), release: note('release') },
    runtimeFiles: () => ({}),
    probe: {
      tenantHealth: () => Promise.resolve(undefined),
      removeData: async (url: string) => void calls.push(`remove files ${url}`),
    },
    clock: { timeout: () => signal },
    epoch: 1n,
  } as unknown as MoveDeps
  const move = { region: 'north', tenantId, from: 'home', to: 'home', fromIsolation: from, toIsolation: to, ...job }
  const models = { from, to }
  return {
    calls,
    region: region as unknown as Region,
    deps,
    destination: otherDestination(move as MoveJob, models, deps),
    origin: otherOrigin(move as MoveJob, models, deps),
  }
}
const silentError = { message: /does not respond\.$/, isTemporary: true }
const following = () => Promise.resolve()
const filesOfBucket = ['remove files http://one', 'remove files http://two']

t.test('After a move into a cluster, the single database is removed, and the bucket has the files', async (t) => {
  const { origin, calls } = endsOf([single, cluster], { files: 'copied' })
  await origin.removeRemains(signal)
  t.same(calls, [`end ${single}`, `remove ${single}`, `drop ${single}`])
})

t.test('After a move out of a cluster, the files in the bucket are removed with it', async (t) => {
  const { origin, calls } = endsOf([cluster, single], { files: 'copied' })
  await origin.removeRemains(signal)
  t.same(calls, [`end ${cluster}`, `remove ${cluster}`, ...filesOfBucket, `drop ${cluster}`])
})

t.test('A failed move removes what it has copied, and never the files of the present services', async (t) => {
  const into = endsOf([single, cluster], { files: 'copied' })
  await into.destination.removeCopy(following, signal)
  t.same(into.calls.slice(1), [`end ${cluster}`, `remove ${cluster}`, ...filesOfBucket, `drop ${cluster}`])
  const early = endsOf([single, cluster], {})
  await early.destination.removeCopy(following, signal)
  t.same(early.calls.slice(1), [`end ${cluster}`, `remove ${cluster}`, `drop ${cluster}`], 'nothing was copied yet')
  const out = endsOf([cluster, single], { files: 'copied' })
  await out.destination.removeCopy(following, signal)
  t.same(out.calls.slice(1), [`end ${single}`, `remove ${single}`, `drop ${single}`])
  const unserved = endsOf([single, cluster], { files: 'copied' })
  await unserved.destination.removeUnserved(signal)
  t.same(unserved.calls.slice(1), [`remove ${cluster}`, ...filesOfBucket, `drop ${cluster}`])
})

t.test('Files are copied on several hosts only', async (t) => {
  for (const models of [
    [single, cluster],
    [cluster, single],
  ] as const) {
    t.type(endsOf(models, {}).destination.files?.add, 'function')
    t.equal(endsOf(models, {}, { spansHosts: false }).destination.files, undefined)
  }
})

t.test('Requests do not wait for the removal of services on a host that does not respond', async (t) => {
  const { destination, calls } = endsOf([single, cluster], { step: 'hold', files: 'copied' }, { silent: ['b'] })
  await t.rejects(destination.removeCopy(following, signal), {
    message: 'The host "b" with services of the tenant does not respond.',
    isTemporary: true,
  })
  t.same(calls, [`end ${cluster}`, 'release catch up', `end ${cluster}`, `remove ${cluster}`])
})

t.test('A removal waits for no host that is lost, or that has no such service', async (t) => {
  for (const [models, options] of [
    [[single, cluster], { silent: ['a'] }],
    [[single, cluster], { silent: ['b'], states: { b: 'lost' } }],
    [[cluster, single], { silent: ['b', 'c'] }],
  ] as const) {
    const { destination, calls } = endsOf(models, {}, { ...options, silent: [...options.silent] })
    await destination.removeCopy(following, signal)
    t.same(calls.slice(-2), [`close ${models[1]}`, `drop ${models[1]}`], 'etcd forgets the cluster, too')
  }
})

t.test('A database on a host that may return is not taken for removed', async (t) => {
  await t.rejects(endsOf([single, cluster], {}, { silent: ['a'] }).origin.isRemoved(signal), silentError)
  t.equal(await endsOf([single, cluster], {}, { silent: ['b'] }).origin.isRemoved(signal), true)
  const lost = endsOf([single, cluster], {}, { silent: ['a'], states: { a: 'lost' } })
  t.equal(await lost.origin.isRemoved(signal), true)
  const { region, deps } = endsOf([single, cluster], {}, { silent: ['a'], states: { a: 'draining' } })
  await t.rejects(rejectSilent(tenantId, single, region, deps), silentError)
  await rejectSilent(tenantId, cluster, region, deps)
})
