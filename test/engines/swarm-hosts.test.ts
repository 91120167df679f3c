// Several hosts as one engine: what is observed of all of them, and what happens when one does not respond.
import t from 'tap'
import type { ContainerHost, ObservedHost } from '#control-plane/engines/container-host.ts'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import type { LinkedHost } from '#control-plane/engines/swarm/host-link.ts'
import { swarmHosts } from '#control-plane/engines/swarm/swarm-hosts.ts'

const { signal } = new AbortController()
const owner = { installation: 'i', stack: 't_0' }
const nothing: ObservedHost = { containers: [], networks: [], volumes: [], unlabelledVolumes: [] }
const network = (members: string[], addresses: Record<string, string> = {}) => ({
  id: 'n',
  name: 'tenantry-t_0-net',
  labels: owner,
  subnet: '10.0.0.0/26',
  internal: true,
  members,
  addresses,
})
const unreachable = () => new EngineError('ENGINE_UNREACHABLE', 'no response')

/** Creates hosts, each with these calls, that record all calls. */
function hostsWith(calls: Record<string, Partial<LinkedHost>>) {
  const made: string[] = []
  let time = 0
  const down = new Set<string>()
  const hosts = new Map(
    Object.entries(calls).map(([id, own]) => {
      const host: Partial<LinkedHost> = {
        ping: () => Promise.resolve(),
        observe: () => Promise.resolve(nothing),
        ...own,
      }
      const recorded = new Proxy(host, {
        get:
          (target, name: keyof LinkedHost) =>
          async (...parameters: never[]) => {
            made.push(`${id} ${name}`)
            if (down.has(id)) throw unreachable()
            const call = target[name] as ((...all: never[]) => Promise<unknown>) | undefined
            return call?.(...parameters)
          },
      })
      return [id, recorded as LinkedHost] as const
    }),
  )
  const all = swarmHosts({ hosts, now: () => time, sleep: () => Promise.resolve() })
  return { all, made, down, pass: (milliseconds: number) => (time += milliseconds) }
}

t.test('A network of several hosts is one with the containers of all', async (t) => {
  const { all } = hostsWith({
    a: { observe: () => Promise.resolve({ ...nothing, networks: [network(['x', 'gate'], { gate: '10.0.0.2' })] }) },
    b: {
      observe: () =>
        Promise.resolve({
          ...nothing,
          networks: [network(['gate'], { gate: '10.0.0.3' })],
          volumes: [{ name: 'v', labels: owner }],
        }),
    },
  })
  const found = await all.observe(owner, signal)
  const addresses = { 'a/gate': '10.0.0.2', 'b/gate': '10.0.0.3' }
  t.same(found.networks, [network(['a/x', 'a/gate', 'b/gate'], addresses)], 'two containers of one name are two')
  t.same(found.volumes, [{ name: 'v', labels: owner, host: 'b' }])
  t.same(found.unreachableHosts, [])
})

t.test('A host that does not respond is named, left out for five seconds, and then read again', async (t) => {
  const { all, made, down, pass } = hostsWith({ a: {}, b: {} })
  await all.observe(owner, signal)
  down.add('b')
  pass(2_000)
  t.same((await all.observe(owner, signal)).unreachableHosts, ['b'])
  t.ok(all.isDown('b'))
  made.length = 0
  t.same((await all.observe(owner, signal)).unreachableHosts, ['b'])
  t.notOk(
    made.some((call) => call.startsWith('b ')),
    'no call',
  )
  await t.rejects(all.at('b').exec('x', [], { signal }), { code: 'HOST_UNREACHABLE', message: /"b"/ })
  down.clear()
  pass(5_000)
  t.same((await all.observe(owner, signal)).unreachableHosts, [])
  t.notOk(all.isDown('b'))
})

t.test('A response to a call that was sent before another one failed does not end the absence of a host', async (t) => {
  const sent = Promise.withResolvers<undefined>()
  const { all, down } = hostsWith({ a: {}, b: { startContainer: () => sent.promise } })
  const start = all.at('b').startContainer('x', signal)
  down.add('b')
  await t.rejects(all.at('b').exec('x', [], { signal }), { code: 'HOST_UNREACHABLE' })
  sent.resolve(undefined)
  await start
  t.same((await all.observe(owner, signal)).unreachableHosts, ['b'])
  t.ok(all.isDown('b'))
})

t.test('Without any host the engine is unreachable', async (t) => {
  const { all, down } = hostsWith({ a: {}, b: {} })
  down.add('a').add('b')
  await t.rejects(all.observe(owner, signal), { code: 'ENGINE_UNREACHABLE' })
  // They respond to pings, and to nothing else.
  const silent = () => Promise.reject(unreachable())
  const other = hostsWith({ a: { observe: silent }, b: { observe: silent } })
  await t.rejects(other.all.observe(owner, signal), { code: 'ENGINE_UNREACHABLE' }, 'a network is not taken for absent')
})

t.test('Networks are created by a manager, also if the first hosts are none', async (t) => {
  const created: unknown[] = []
  const noManager = () => Promise.reject(new EngineError('NOT_A_MANAGER', 'no manager'))
  const { all } = hostsWith({
    a: { createNetwork: noManager },
    b: {
      createNetwork: (spec) => {
        created.push(spec)
        return Promise.resolve()
      },
    },
  })
  const spec = { name: 'n', labels: owner, subnet: '10.0.0.0/26', internal: true, hostAddress: false }
  await all.createNetwork(spec, signal)
  t.same(created, [{ ...spec, spansHosts: true }])
  const none = hostsWith({ a: { createNetwork: noManager } })
  await t.rejects(none.all.createNetwork(spec, signal), { code: 'NOT_A_MANAGER' })
})

t.test('A network that no manager removes is not taken for a failure of one host', async (t) => {
  const silent = () => Promise.reject(unreachable())
  const { all } = hostsWith({ a: { removeNetwork: silent }, b: { disconnectAll: silent } })
  await t.rejects(all.removeNetwork('n', owner, signal), { code: 'ENGINE_UNREACHABLE' })
  const other = hostsWith({ a: { removeNetwork: () => Promise.resolve() }, b: { disconnectAll: silent } })
  await other.all.removeNetwork('n', owner, signal)
  t.ok(other.all.isDown('b'), 'what is on a host that does not respond any more stays there')
})

t.test('A network is removed after all hosts have disconnected their containers', async (t) => {
  const { all, made } = hostsWith({ a: {}, b: {} })
  await all.removeNetwork('n', owner, signal)
  t.same(
    made.filter((call) => call.endsWith('etwork') || call.endsWith('All')),
    ['a disconnectAll', 'b disconnectAll', 'a removeNetwork'],
  )
})

t.test('Another error of a host is not taken for its absence', async (t) => {
  const { all } = hostsWith({
    a: {},
    b: { observe: () => Promise.reject(new EngineError('ENGINE_FAILED', 'a strange response')) },
  })
  await t.rejects(all.observe(owner, signal), { code: 'ENGINE_FAILED' })
  t.throws(() => all.at('c'), { code: 'HOST_UNREACHABLE', message: /"c"/ })
})

t.test('The stream of events ends with that of one host, and when a host returns', async (t) => {
  const stream = (values: string[]): ContainerHost['events'] =>
    async function* (_owned, until) {
      for (const what of values) yield { stack: 't_0', what }
      if (values.length === 0) await new Promise((resolve) => until.addEventListener('abort', resolve, { once: true }))
    }
  const hosts = new Map(
    Object.entries({ a: ['1', '2'], b: [] }).map(([id, values]) => [
      id,
      { ping: () => Promise.resolve(), events: stream(values) } as Partial<LinkedHost> as LinkedHost,
    ]),
  )
  const all = swarmHosts({ hosts, now: () => 0, sleep: () => Promise.resolve() })
  const seen: string[] = []
  for await (const { what } of all.events({ installation: 'i' }, signal)) seen.push(what)
  t.same(seen, ['1', '2'], 'both streams ended')
})

t.test('The wait for a host that is away ends at once with the stream', async (t) => {
  const away: Partial<LinkedHost> = { ping: () => Promise.reject(unreachable()) }
  const there: Partial<LinkedHost> = {
    ping: () => Promise.resolve(),
    async *events() {
      yield { stack: 't_0', what: '1' }
    },
  }
  const hosts = new Map(Object.entries({ a: there, b: away }).map(([id, host]) => [id, host as LinkedHost]))
  let waits = 0
  const sleep = (_milliseconds: number, until: AbortSignal) => {
    waits++
    return new Promise<void>((_resolve, reject) => {
      const abort = () => reject(until.reason as Error)
      if (until.aborted) abort()
      else until.addEventListener('abort', abort, { once: true })
    })
  }
  const all = swarmHosts({ hosts, now: () => 0, sleep })
  const seen: string[] = []
  for await (const { what } of all.events({ installation: 'i' }, signal)) seen.push(what)
  t.same(seen, ['1'])
  t.equal(waits, 1)
})

t.test('The stream of events fails with the error of a host', async (t) => {
  const host: Partial<LinkedHost> = {
    ping: () => Promise.resolve(),
    events: () => ({
      [Symbol.asyncIterator]: () => ({
        next: () => Promise.reject(new EngineError('ENGINE_FAILED', 'a broken stream')),
      }),
    }),
  }
  const all = swarmHosts({ hosts: new Map([['a', host as LinkedHost]]), now: () => 0, sleep: () => Promise.resolve() })
  await t.rejects(
    async () => {
      for await (const event of all.events({ installation: 'i' }, signal)) t.fail(event.what)
    },
    { code: 'ENGINE_FAILED' },
  )
})
