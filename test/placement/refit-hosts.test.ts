// Hosts for services whose memory changes: services stay where there is room, and no growth exceeds a host.
import fc from 'fast-check'
import t from 'tap'
import { chooseHosts, type HostCapacity } from '#control-plane/placement/choose-hosts.ts'
import { refitHosts, type Refit } from '#control-plane/placement/refit-hosts.ts'
import { effort, seed } from '#test/support/effort.ts'

const clusterOf = (postgres: number, runtime: number) => [
  ...[1, 2, 3].map((number) => ({ service: `postgres-${number}`, memoryBytes: postgres })),
  ...[1, 2].map((number) => ({ service: `router-${number}`, memoryBytes: 10 })),
  ...[1, 2].map((number) => ({ service: `runtime-${number}`, memoryBytes: runtime })),
]
const placement = {
  'postgres-1': 'a',
  'postgres-2': 'b',
  'postgres-3': 'c',
  'router-1': 'a',
  'router-2': 'b',
  'runtime-1': 'a',
  'runtime-2': 'b',
}
const reservedOf = (needs: Refit['needs']) =>
  Object.fromEntries(needs.map(({ service, memoryBytes }) => [service, memoryBytes]))
const host = (id: string, freeBytes: number, zone?: string): HostCapacity => ({ id, freeBytes, zone })
const before = clusterOf(100, 50)
const refit = (change: Partial<Refit>) =>
  refitHosts({
    needs: before,
    current: placement,
    reserved: reservedOf(before),
    hosts: ['a', 'b', 'c'].map((id) => host(id, 0)),
    receiving: ['a', 'b', 'c'],
    together: false,
    ...change,
  })

t.test('Services stay while their hosts have the memory, also if these have too little for what is there', (t) => {
  t.same(refit({}), placement)
  t.same(refit({ hosts: ['a', 'b', 'c'].map((id) => host(id, -1_000)) }), placement)
  t.same(refit({ needs: clusterOf(80, 40), hosts: ['a', 'b', 'c'].map((id) => host(id, -1_000)) }), placement)
  t.same(
    refit({ needs: clusterOf(200, 50), hosts: ['a', 'b', 'c'].map((id) => host(id, 100)) }),
    placement,
    'what the tenant itself reserves is available to it',
  )
  t.end()
})

t.test('The services of a cluster that do not fit go to another host, and the largest stay', (t) => {
  const hosts = [host('a', 100), host('b', 150), host('c', 500)]
  t.same(refit({ needs: clusterOf(200, 100), hosts }), { ...placement, 'runtime-1': 'c' })
  t.equal(refit({ needs: clusterOf(200, 100), hosts: [host('a', 100), host('b', 150), host('c', 150)] }), undefined)
  t.equal(refit({ needs: clusterOf(200, 100), hosts, receiving: ['a', 'b'] }), undefined, 'not to a draining host')
  t.end()
})

t.test('Services that share volumes stay on their host, or there is no room', (t) => {
  const single = (bytes: number) => ['postgres', 'runtime'].map((service) => ({ service, memoryBytes: bytes }))
  const change = {
    current: { postgres: 'a', runtime: 'a' },
    reserved: { postgres: 50, runtime: 50 },
    hosts: [host('a', 100), host('b', 10_000)],
    together: true,
  }
  t.same(refit({ ...change, needs: single(100) }), change.current)
  t.same(refit({ ...change, needs: single(100), receiving: [] }), change.current, 'also on a draining host')
  t.equal(refit({ ...change, needs: single(101) }), undefined)
  t.same(refit({ ...change, needs: single(101), current: {}, reserved: {} }), { postgres: 'b', runtime: 'b' })
  t.end()
})

t.test('A service on a host that does not respond stays there', (t) => {
  t.same(refit({ needs: clusterOf(900, 50), hosts: [host('a', 800), host('b', 800)] }), placement)
  t.end()
})

t.test('Of any hosts and sizes, growth never exceeds a host, and shrinking is always possible', (t) => {
  const hosts = fc.array(
    fc.record({ free: fc.integer({ min: -300, max: 1_000 }), zone: fc.constantFrom('x', 'y', undefined) }),
    { minLength: 1, maxLength: 6 },
  )
  const size = fc.integer({ min: 1, max: 500 })
  fc.assert(
    fc.property(hosts, size, size, size, size, (given, postgres, runtime, postgresAfter, runtimeAfter) => {
      const [needs, after] = [clusterOf(postgres, runtime), clusterOf(postgresAfter, runtimeAfter)]
      const roomy = given.map(({ zone }, at) => host(`h${at}`, 1_000_000, zone))
      const current = chooseHosts(needs, roomy, {}, false) ?? {}
      const left = given.map(({ free, zone }, at) => host(`h${at}`, free, zone))
      const chosen = refitHosts({
        needs: after,
        current,
        reserved: reservedOf(needs),
        hosts: left,
        receiving: left.map(({ id }) => id),
        together: false,
      })
      if (chosen === undefined) return postgresAfter > postgres || runtimeAfter > runtime
      const memoryIn = (where: Readonly<Record<string, string>>, sizes: Refit['needs'], id: string) =>
        sizes.filter(({ service }) => where[service] === id).reduce((sum, { memoryBytes }) => sum + memoryBytes, 0)
      return left.every(({ id, freeBytes }) => {
        const [used, available] = [memoryIn(chosen, after, id), freeBytes + memoryIn(current, needs, id)]
        // What was too much before may stay, and what goes there must have room.
        const isNew = after.some(({ service }) => chosen[service] === id && current[service] !== id)
        const isLarger = after.some(
          ({ service, memoryBytes }) =>
            chosen[service] === id && memoryBytes > (reservedOf(needs)[service] ?? 0) && current[service] === id,
        )
        return used <= available || used <= memoryIn(current, needs, id) || (!isNew && !isLarger)
      })
    }),
    { seed, numRuns: effort({ small: 300, full: 20_000 }) },
  )
  t.end()
})
