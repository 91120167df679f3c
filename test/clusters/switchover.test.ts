// A switchover: which member is chosen, what Patroni receives, and that an interruption at any point ends in exactly one.
import t from 'tap'
import { switchOver } from '#control-plane/clusters/switch-over.ts'
import type { ClusterState } from '#control-plane/clusters/cluster-state.ts'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { clusterFailpointNames, type FailpointName } from '#control-plane/reconcile/failpoints.ts'
import type { Reconciliation } from '#control-plane/reconcile/reconciliation.ts'
import type { Snapshot } from '#control-plane/reconcile/reconcile-store.ts'
import { carryOutSwitchover, planSwitchover } from '#control-plane/reconcile/switch-over.ts'
import type { Switchover } from '#control-plane/tenants/tenant.ts'
import { stateOf } from './support.ts'

const { signal } = new AbortController()
const anyOther: Switchover = { from: 'postgres-1', to: null }
const toThird: Switchover = { from: 'postgres-1', to: 'postgres-3' }

t.test('The next step follows from the primary at present, not from the one at the request', async (t) => {
  t.same(planSwitchover(anyOther, stateOf()), { do: 'switch-over', to: 'postgres-2' })
  t.same(planSwitchover(anyOther, stateOf('postgres-1', { 'postgres-2': { lag: 9 } })), {
    do: 'switch-over',
    to: 'postgres-3',
  })
  t.same(planSwitchover(anyOther, stateOf('postgres-2')), { do: 'nothing' }, 'done, or a failover did it')
  t.same(planSwitchover(toThird, stateOf('postgres-3')), { do: 'nothing' })
  t.same(planSwitchover(toThird, stateOf('postgres-2')), { do: 'switch-over', to: 'postgres-3' }, 'after a failover')
})

t.test('Without a healthy candidate it fails, with the state of each member', async (t) => {
  const lagging = { 'postgres-2': null, 'postgres-3': { state: 'starting' } }
  t.same(planSwitchover(anyOther, stateOf('postgres-1', lagging)), {
    do: 'fail',
    message:
      'No replica can become the primary. postgres-1: primary, running; postgres-2: absent; postgres-3: replica, starting.',
  })
  t.match(planSwitchover(toThird, stateOf('postgres-1', { 'postgres-3': { role: 'replica' } })), {
    do: 'fail',
    message: /^The member postgres-3 cannot become the primary\. /,
  })
})

t.test('Patroni receives the request on standard input, first at the primary', async (t) => {
  const calls: { service: string; command: readonly string[]; input: unknown }[] = []
  const exec = (response: (service: string) => string) => ({
    exec: async (_: string, service: string, command: readonly string[], { input }: { input?: unknown }) => {
      calls.push({ service, command, input })
      return { code: 0, stdout: response(service), stderr: '' }
    },
  })
  const call = { tenantId: 't_0123456789abcdef0123', from: 'postgres-2', to: 'postgres-1', password: 'secret-word' }
  const body = '{"leader": "postgres-2", "candidate": "postgres-1"}'.replaceAll(' ', '')
  t.equal(
    await switchOver(
      exec(() => 'HTTP/1.0 200 OK\r\n\r\nSuccessfully switched over'),
      call,
      signal,
    ),
    undefined,
  )
  t.match(calls, [{ service: 'postgres-2', command: ['bash', '-c', String] }])
  t.notMatch(calls[0]?.command.join(' '), /secret-word/)
  const [head, sent] = String(calls[0]?.input).split('\r\n\r\n')
  t.equal(sent, body)
  t.match(head, /^POST \/switchover HTTP\/1\.0\r\n/)
  t.match(head, `authorization: Basic ${Buffer.from('patroni:secret-word').toString('base64')}\r\n`)
  t.match(head, `content-length: ${body.length}`)

  const rejected = exec(() => 'HTTP/1.0 412 Precondition Failed\r\ncontent-type: text/html\r\n\r\nno good candidates\n')
  t.equal(await switchOver(rejected, call, signal), 'no good candidates')
  calls.length = 0
  const afterwards = exec((service) => (service === 'postgres-3' ? 'HTTP/1.0 200 OK\r\n\r\n' : ''))
  t.equal(await switchOver(afterwards, call, signal), undefined, 'a member that does not respond is skipped')
  t.same(
    calls.map(({ service }) => service),
    ['postgres-2', 'postgres-1', 'postgres-3'],
  )
  await t.rejects(
    switchOver(
      exec(() => ''),
      call,
      signal,
    ),
    { code: 'UNHEALTHY' },
  )
})

/** A cluster in memory, whose Patroni switches over at once, and a run of the reconciler with it. */
function clusterInMemory(initial: ClusterState = stateOf(), reason?: string) {
  let state = initial
  let now = 0
  const switchovers: string[] = []
  const run = (failAt?: FailpointName) =>
    ({
      store: { recordStep: async () => undefined },
      epoch: 1n,
      clock: {
        ...systemClock,
        now: () => new Date(now),
        sleep: async (milliseconds: number) => void (now += milliseconds),
      },
      failpoint: async (name: FailpointName) => {
        if (name === failAt) throw new Error(`interrupted at ${name}`)
      },
      region: {
        cluster: async () => state,
        switchOver: async (_: string, from: string, to: string) => {
          if (reason !== undefined) return reason
          if (state.primary !== from) return `${from} is not the leader`
          switchovers.push(`${from} to ${to}`)
          state = stateOf(to)
          return undefined
        },
      },
    }) as unknown as Reconciliation
  const become = (next: ClusterState) => (state = next)
  return { run, switchovers, become, lose: () => become(stateOf('none')), milliseconds: () => now }
}

const requested = (switchover?: Switchover) =>
  ({
    id: 't_0123456789abcdef0123',
    isolation: 'cluster-per-tenant',
    operation: { id: 'o', attempts: 1, ...(switchover === undefined ? {} : { switchover }) },
  }) as Snapshot

t.test('An interruption at any point ends in exactly one switchover', async (t) => {
  for (const switchover of [anyOther, toThird]) {
    for (const name of clusterFailpointNames) {
      const cluster = clusterInMemory()
      await t.rejects(carryOutSwitchover(requested(switchover), cluster.run(name), signal), /interrupted/)
      t.equal(await carryOutSwitchover(requested(switchover), cluster.run(), signal), undefined, name)
      t.equal(await carryOutSwitchover(requested(switchover), cluster.run(), signal), undefined, 'and again')
      t.same(cluster.switchovers, [`postgres-1 to ${switchover.to ?? 'postgres-2'}`])
    }
  }
})

t.test('A replica that confirms no commits yet is awaited, for a bounded time', async (t) => {
  const none = stateOf('postgres-1', { 'postgres-2': { role: 'replica' }, 'postgres-3': { role: 'replica' } })
  const late = clusterInMemory(none)
  const run = late.run()
  const { sleep } = run.clock
  run.clock.sleep = async (milliseconds, each) => {
    await sleep(milliseconds, each)
    if (late.milliseconds() === 3_000) late.become(stateOf())
  }
  t.equal(await carryOutSwitchover(requested(anyOther), run, signal), undefined)
  t.same(late.switchovers, ['postgres-1 to postgres-2'])

  const never = clusterInMemory(none)
  const message = await carryOutSwitchover(requested(anyOther), never.run(), signal)
  t.match(message, /^No replica can become the primary\. postgres-1: primary, running; postgres-2: replica, streaming/)
  t.equal(never.milliseconds(), 10_000)
})

t.test('Other operations switch nothing over', async (t) => {
  const cluster = clusterInMemory()
  t.equal(await carryOutSwitchover(requested(), cluster.run(), signal), undefined)
  t.same(cluster.switchovers, [])
})

t.test('The reason of Patroni is returned, and a cluster without a primary is awaited', async (t) => {
  const rejecting = clusterInMemory(stateOf(), 'no good candidates')
  t.equal(
    await carryOutSwitchover(requested(toThird), rejecting.run(), signal),
    'Patroni did not make postgres-3 the primary: no good candidates',
  )
  const without = clusterInMemory()
  without.lose()
  const error = await carryOutSwitchover(requested(toThird), without.run(), signal).catch((cause: unknown) => cause)
  t.ok(error instanceof EngineError)
  t.match(error, { code: 'UNHEALTHY', message: 'The cluster has no primary.' })
})
