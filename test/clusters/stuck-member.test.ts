// A member that can't follow the primary any more is found, and copied again.
import t from 'tap'
import { copyAgain, stuckMember } from '#control-plane/clusters/stuck-member.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { Observations } from '#control-plane/reconcile/observations.ts'
import { observeCluster } from '#control-plane/reconcile/observe-cluster.ts'
import type { Reconciliation } from '#control-plane/reconcile/reconciliation.ts'
import type { Snapshot } from '#control-plane/reconcile/reconcile-store.ts'
import { type ReportedMember, stateOf } from './support.ts'

const { signal } = new AbortController()
const idle: Partial<ReportedMember> = { role: 'replica', state: 'running', lag: 1000 }
const withThird = (change: Partial<ReportedMember>) => stateOf('postgres-1', { 'postgres-3': { ...idle, ...change } })

t.test('A replica that does not come closer to the primary is stuck', async (t) => {
  t.equal(stuckMember(withThird({}), withThird({})), 'postgres-3')
  t.equal(stuckMember(withThird({}), withThird({ lag: 5000 })), 'postgres-3', 'the primary moves on')
  t.equal(stuckMember(withThird({ lag: 'unknown' }), withThird({ lag: 'unknown' })), 'postgres-3')
  t.equal(stuckMember(withThird({ state: 'start failed' }), withThird({ state: 'start failed' })), 'postgres-3')
})

t.test('A replica that makes progress, copies or streams is not', async (t) => {
  t.equal(stuckMember(withThird({}), withThird({ lag: 999 })), undefined)
  t.equal(stuckMember(withThird({ timeline: 1 }), withThird({ timeline: 2 })), undefined)
  for (const state of ['creating replica', 'starting', 'streaming', 'in archive recovery'])
    t.equal(stuckMember(withThird({}), withThird({ state })), undefined, state)
  t.equal(stuckMember(withThird({ state: 'starting' }), withThird({})), undefined, 'it has just started')
  t.equal(stuckMember(stateOf('postgres-1', { 'postgres-3': null }), withThird({})), undefined, 'it was absent')
})

t.test('No member is copied again unless another replica has all commits', async (t) => {
  const alone = stateOf('postgres-1', { 'postgres-2': idle, 'postgres-3': idle })
  t.equal(stuckMember(alone, alone), undefined)
  const none = stateOf('none', { 'postgres-3': idle })
  t.equal(stuckMember(none, none), undefined)
})

t.test('Patroni of the member is called, and its reason is reported', async (t) => {
  const calls: string[] = []
  const engine = (response: string) => ({
    exec: async (_: string, service: string, _command: readonly string[], { input }: { input?: unknown }) => {
      calls.push(`${service}: ${String(input).split('\r\n')[0] ?? ''} ${String(input).split('\r\n\r\n')[1] ?? ''}`)
      return { code: 0, stdout: response, stderr: '' }
    },
  })
  const call = { tenantId: 't_0123456789abcdef0123', member: 'postgres-3', password: 'secret-word' }
  await copyAgain(engine('HTTP/1.0 200 OK\r\n\r\nreinitialize started'), call, signal)
  t.same(calls, ['postgres-3: POST /reinitialize HTTP/1.0 {"force":true}'])
  await t.rejects(copyAgain(engine('HTTP/1.0 503 Unavailable\r\n\r\nno leader'), call, signal), {
    code: 'UNHEALTHY',
    message: 'Patroni does not copy postgres-3 again: no leader',
  })
})

t.test('The reconciler lets a stuck member copy its data after it has waited, and tries again', async (t) => {
  let now = 0
  const clock = {
    ...systemClock,
    now: () => new Date(now),
    sleep: async (milliseconds: number) => void (now += milliseconds),
  }
  const copied: string[] = []
  let isAway = false
  const run = {
    clock,
    observations: new Observations(clock),
    region: {
      cluster: async () => {
        if (isAway && now > 0) throw new Error('no member responds')
        return withThird({})
      },
      copyAgain: async (_: string, member: string) => void copied.push(`${member} after ${now / 1000} s`),
    },
  } as unknown as Reconciliation
  const tenant = { id: 't_0123456789abcdef0123', isolation: 'cluster-per-tenant' } as unknown as Snapshot
  await t.rejects(observeCluster(tenant, run, signal), {
    code: 'UNHEALTHY',
    message: 'These members do not follow the primary: postgres-3.',
  })
  t.same(copied, ['postgres-3 after 40 s'])
  t.match(run.observations.seen.get('Replicating'), { status: 'False' })
  t.match(run.observations.seen.get('Quorum'), { status: 'True' })

  now = 0
  isAway = true
  await t.rejects(observeCluster(tenant, run, signal), { message: 'no member responds' })
  t.equal(copied.length, 1, 'a state that cannot be read any more proves nothing')
})
