// The stacks of a region and of its tenants are computed once, and again after each change of what they contain.
import t from 'tap'
import type { RegionConfig } from '#control-plane/regions/region-config.ts'
import type { Snapshot } from '#control-plane/reconcile/reconcile-store.ts'
import { createRegionStacks } from '#control-plane/reconcile/region-stacks.ts'
import { ResultCache } from '#control-plane/reconcile/result-cache.ts'
import type { RegionStackInput } from '#control-plane/stacks/region-stack.ts'
import { clusterInput, surroundings } from '../engines/several-hosts.ts'

const { docker, cluster } = surroundings
const token = { sent: 'first', accepted: ['first'] }
const input: RegionStackInput = {
  region: 'north',
  installation: '01234567-89ab',
  domain: 'north.test',
  docker,
  images: { postgres: 'p:1', runtime: 'r:1', gateway: 'g:1', etcd: 'e:1', clusterMember: 'm:1' },
  internalToken: token,
  superuserPassword: 'z'.repeat(32),
  s3SecretKey: 'the-secret-key',
  hasHomes: true,
  hasClusters: true,
  etcd: cluster.etcd,
}
const services = ['postgres-1', 'postgres-2', 'postgres-3', 'router-1', 'router-2', 'runtime-1', 'runtime-2']
const { id, images, isolation, resources } = clusterInput
const tenant = {
  id,
  images,
  isolation,
  desired: 'active',
  homeVersion: 'v1',
  sizes: resources,
  restarts: 0,
  isArchived: false,
  subnet: 1,
  placement: Object.fromEntries(services.map((service, at) => [service, ['a', 'b', 'c'][at % 3]])),
} as unknown as Snapshot

t.test('Unchanged stacks are the same object', (t) => {
  const stacks = createRegionStacks({ docker } as RegionConfig, token)
  t.equal(stacks.own({ ...input }), stacks.own(input))
  t.equal(stacks.of({ ...tenant }, { ...input }), stacks.of(tenant, input))
  t.same(
    stacks.of(tenant, input).services.map(({ name, host }) => [name, host]),
    Object.entries(tenant.placement),
  )
  t.end()
})

t.test('Each change of a tenant, an image or the token gives another stack', (t) => {
  const stacks = createRegionStacks({ docker } as RegionConfig, token)
  const [own, first] = [stacks.own(input), stacks.of(tenant, input)]
  for (const change of [
    { desired: 'paused' },
    { restarts: 1 },
    { subnet: 2 },
    { isArchived: true },
    { images: { postgres: 'p', runtime: 'other' } },
    { placement: { ...tenant.placement, 'runtime-1': 'a' } },
  ] as Partial<Snapshot>[])
    t.strictNotSame(stacks.of({ ...tenant, ...change }, input), first, Object.keys(change).join())
  t.strictNotSame(stacks.own({ ...input, hasHomes: false, hasClusters: false }), own)
  const others = { ...input, images: { ...input.images, gateway: 'g:2' } }
  t.strictNotSame(stacks.own(others), own)
  t.strictNotSame(stacks.of(tenant, others).networks, first.networks, 'the gateways have other names')
  token.accepted = ['first', 'second']
  const both = stacks.of(tenant, input)
  t.strictNotSame(both, first, 'the runtimes accept another token')
  token.sent = 'second'
  t.strictNotSame(stacks.of(tenant, input), both, 'the runtimes send another token')
  t.strictNotSame(stacks.own(input), own)
  t.end()
})

t.test('The stack of a tenant that moves has the services of both models once all have hosts', (t) => {
  const stacks = createRegionStacks({ docker } as RegionConfig, token)
  const moving = { isolation: 'database-per-tenant', images: { postgres: 'p', runtime: 'r' } } as const
  t.same(
    stacks.of({ ...tenant, moving, placement: { ...tenant.placement, postgres: 'b' } }, input),
    stacks.of(tenant, input),
  )
  const placement = { ...tenant.placement, postgres: 'b', runtime: 'b' }
  const { services: all, volumes } = stacks.of({ ...tenant, moving, placement }, input)
  t.same(
    all
      .filter(({ name }) => !services.includes(name))
      .map(({ name, host, networks }) => [name, host, networks[0]?.aliases]),
    [
      ['postgres', 'b', [`${id}-postgres-b`]],
      ['runtime', 'b', [`${id}-runtime-b`]],
    ],
  )
  t.same(
    volumes.map(({ name, host }) => [name, host]),
    [
      ['data-1', 'a'],
      ['data-2', 'b'],
      ['data-3', 'c'],
      ['runtime-1', 'c'],
      ['runtime-2', 'a'],
      ['data', 'b'],
      ['files', 'b'],
    ],
    'no volume has the name of another one',
  )
  t.end()
})

t.test('A cache evicts the oldest result, and stores no error', (t) => {
  const cache = new ResultCache<{ key: string }>(2)
  const computed: string[] = []
  const get = (key: string) =>
    cache.get(key, () => {
      computed.push(key)
      return { key }
    })
  for (const key of ['a', 'b', 'a', 'c', 'b', 'a']) t.equal(get(key).key, key)
  t.same(computed, ['a', 'b', 'c', 'a'])
  const failure = new RangeError('no result')
  t.throws(
    () =>
      cache.get('d', () => {
        throw failure
      }),
    failure,
  )
  t.same(get('d'), { key: 'd' })
  t.end()
})
