// Hosts for a tenant's services: apart from each other as far as possible, never beyond the memory of a host.
import fc from 'fast-check'
import t from 'tap'
import { chooseHosts, crowded, kindOf, type HostCapacity } from '#control-plane/placement/choose-hosts.ts'
import { seed } from '#test/support/effort.ts'

const cluster = [
  ...[1, 2, 3].map((number) => ({ service: `postgres-${number}`, memoryBytes: 4_000 })),
  ...[1, 2].map((number) => ({ service: `router-${number}`, memoryBytes: 64 })),
  ...[1, 2].map((number) => ({ service: `runtime-${number}`, memoryBytes: 2_000 })),
]
const host = (id: string, freeBytes = 100_000, zone?: string): HostCapacity => ({ id, freeBytes, zone })
const hostsOf = (placement: Readonly<Record<string, string>> | undefined, kind: string) =>
  Object.entries(placement ?? {})
    .filter(([service]) => kindOf(service) === kind)
    .map(([, id]) => id)
    .sort()

t.test('Services of one kind are on different hosts', (t) => {
  const placement = chooseHosts(
    cluster,
    ['a', 'b', 'c'].map((id) => host(id)),
    {},
    false,
  )
  t.same(hostsOf(placement, 'postgres'), ['a', 'b', 'c'])
  for (const kind of ['router', 'runtime']) t.equal(new Set(hostsOf(placement, kind)).size, 2, kind)
  t.end()
})

t.test('Zones are apart, too, and the host with the most free memory comes first', (t) => {
  const hosts = [host('a', 50_000, 'x'), host('b', 40_000, 'x'), host('c', 30_000, 'y'), host('d', 20_000, 'z')]
  t.same(hostsOf(chooseHosts(cluster, hosts, {}, false), 'postgres'), ['a', 'c', 'd'])
  t.same(hostsOf(chooseHosts([{ service: 'postgres', memoryBytes: 1 }], hosts, {}, true), 'postgres'), ['a'])
  t.end()
})

t.test('Services that have a host keep it, and others avoid it', (t) => {
  const hosts = ['a', 'b', 'c'].map((id) => host(id))
  const placement = chooseHosts(cluster, hosts, { 'postgres-1': 'c', 'postgres-2': 'a' }, false)
  t.match(placement, { 'postgres-1': 'c', 'postgres-2': 'a', 'postgres-3': 'b' })
  t.end()
})

t.test('Services that share volumes are on one host', (t) => {
  const needs = [
    { service: 'postgres', memoryBytes: 600 },
    { service: 'runtime', memoryBytes: 600 },
  ]
  const hosts = [host('a', 1_000), host('b', 1_200), host('c', 1_100)]
  t.same(chooseHosts(needs, hosts, {}, true), { postgres: 'b', runtime: 'b' })
  t.equal(chooseHosts(needs, [host('a', 1_000)], {}, true), undefined)
  t.equal(
    chooseHosts(needs, [host('a', 500), host('b', 9_000)], { postgres: 'a' }, true),
    undefined,
    'only its own host',
  )
  t.end()
})

t.test('A full region has no placement, and no placement exceeds a host', (t) => {
  const full = ['a', 'b', 'c'].map((id) => host(id, 3_999))
  t.equal(chooseHosts(cluster, full, {}, false), undefined)
  t.equal(chooseHosts(cluster, [], {}, false), undefined)
  fc.assert(
    fc.property(
      fc.array(fc.record({ free: fc.integer({ min: 0, max: 20_000 }), zone: fc.constantFrom('x', 'y', undefined) }), {
        minLength: 1,
        maxLength: 6,
      }),
      (all) => {
        const hosts = all.map(({ free, zone }, at) => host(`h${at}`, free, zone))
        const placement = chooseHosts(cluster, hosts, {}, false)
        if (placement === undefined) return true
        const isWhole = cluster.every(({ service }) => placement[service] !== undefined)
        const fits = hosts.every(({ id, freeBytes }) => {
          const used = cluster.filter(({ service }) => placement[service] === id)
          return used.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0) <= freeBytes
        })
        return isWhole && fits
      },
    ),
    { seed, numRuns: 300 },
  )
  t.end()
})

t.test('A service leaves a host that has another one of its kind, if a host has none', (t) => {
  const two = {
    'postgres-1': 'a',
    'postgres-2': 'b',
    'postgres-3': 'a',
    'runtime-1': 'a',
    'runtime-2': 'a',
    'router-1': 'c',
  }
  t.same(crowded(two, ['a', 'b', 'c']), ['postgres-3', 'runtime-2'])
  t.same(crowded(two, ['a', 'b']), ['runtime-2'], 'each other host has a member already')
  t.same(crowded(two, ['a']), [])
  const moved = chooseHosts(
    cluster,
    ['a', 'b', 'c'].map((id) => host(id)),
    { 'postgres-1': 'a', 'postgres-2': 'b' },
    false,
  )
  t.same(crowded(moved ?? {}, ['a', 'b', 'c']), [])
  t.end()
})
