// `planRollout` decides the next step of a rollout from its record and the observed tenants.
import t from 'tap'
import type { Rollout, RolloutSubject } from '#control-plane/rollouts/rollout.ts'
import { planRollout, type RolloutStep } from '#control-plane/rollouts/rollout-plan.ts'
import { at, moved, rollout, subject } from './support/rollout-parts.ts'

const upgraded = (id: string, more: Partial<RolloutSubject> = {}) =>
  subject(id, { generation: 2, observedGeneration: 2, image: 'new', ...more })
const paused = { desired: 'paused', status: 'paused' } as const

t.test('the plan takes the right step in each state, 20 s after the wave began', async (t) => {
  const cases: {
    what: string
    rollout: Rollout
    subjects: RolloutSubject[]
    health?: Record<string, 'healthy' | 'unhealthy'>
    since?: number
    now?: number
    step: RolloutStep
  }[] = [
    {
      what: 'the oldest tenant moves first, alone',
      rollout: rollout(),
      subjects: [subject('a'), subject('b')],
      step: { do: 'move', wave: 1, tenantIds: ['a'] },
    },
    {
      what: 'a named canary moves first',
      rollout: rollout({ canary: 'b' }),
      subjects: [subject('a'), subject('b')],
      step: { do: 'move', wave: 1, tenantIds: ['b'] },
    },
    {
      what: 'the plan waits for a busy canary',
      rollout: rollout({ canary: 'b' }),
      subjects: [subject('a'), subject('b', { operations: ['update'] })],
      step: { do: 'wait' },
    },
    {
      what: 'the plan does not wait for a paused canary',
      rollout: rollout({ canary: 'b' }),
      subjects: [subject('a'), subject('b', paused)],
      step: { do: 'move', wave: 1, tenantIds: ['a'] },
    },
    {
      what: 'a tenant that has the image is not moved',
      rollout: rollout(),
      subjects: [subject('a', { image: 'new' })],
      step: { do: 'finish', state: 'succeeded', error: undefined },
    },
    {
      what: 'there are no tenants',
      rollout: rollout(),
      subjects: [],
      step: { do: 'finish', state: 'succeeded', error: undefined },
    },
    {
      what: 'the plan waits for busy tenants',
      rollout: rollout(),
      subjects: [subject('a', { operations: ['backup'] }), subject('b', paused)],
      step: { do: 'wait' },
    },
    {
      what: 'the plan waits for a tenant that is being created',
      rollout: rollout(),
      subjects: [subject('a', { status: 'pending', image: undefined, operations: ['create'] })],
      step: { do: 'wait' },
    },
    {
      what: 'the plan does not wait for a tenant whose creation failed',
      rollout: rollout(),
      subjects: [subject('a', { status: 'failed', image: undefined, operations: ['create'] })],
      step: { do: 'finish', state: 'succeeded', error: undefined },
    },
    {
      what: 'stopped and failed tenants move last',
      rollout: rollout({ wave: 1, tenants: [moved('a', { state: 'moved' })] }),
      subjects: [upgraded('a'), subject('b', paused), subject('c', { status: 'failed' })],
      step: { do: 'move', wave: 0, tenantIds: ['b', 'c'] },
    },
    {
      what: 'a ready tenant of unknown health',
      rollout: rollout({ wave: 1, tenants: [moved('a')] }),
      subjects: [upgraded('a')],
      step: { do: 'wait' },
    },
    {
      what: 'a ready and healthy tenant',
      rollout: rollout({ wave: 1, tenants: [moved('a')] }),
      subjects: [upgraded('a')],
      health: { a: 'healthy' },
      step: { do: 'record', tenants: [moved('a', { wellSince: at(20) })] },
    },
    {
      what: 'healthy for 9 s',
      rollout: rollout({ wave: 1, tenants: [moved('a', { wellSince: at(11) })] }),
      subjects: [upgraded('a')],
      health: { a: 'healthy' },
      step: { do: 'wait' },
    },
    {
      what: 'healthy for 10 s',
      rollout: rollout({ wave: 1, tenants: [moved('a', { wellSince: at(10) })] }),
      subjects: [upgraded('a')],
      health: { a: 'healthy' },
      step: { do: 'record', tenants: [moved('a', { wellSince: at(10), state: 'moved' })] },
    },
    {
      what: 'healthy without a soak',
      rollout: rollout({ wave: 1, soakSeconds: 0, tenants: [moved('a')] }),
      subjects: [upgraded('a')],
      health: { a: 'healthy' },
      step: { do: 'record', tenants: [moved('a', { wellSince: at(20), state: 'moved' })] },
    },
    {
      what: 'unknown health after healthy restarts the soak',
      rollout: rollout({ wave: 1, tenants: [moved('a', { wellSince: at(11) })] }),
      subjects: [upgraded('a')],
      step: { do: 'record', tenants: [moved('a')] },
    },
    {
      what: 'unhealthy after healthy',
      rollout: rollout({ wave: 1, tenants: [moved('a', { wellSince: at(11) })] }),
      subjects: [upgraded('a')],
      health: { a: 'unhealthy' },
      step: { do: 'roll-back', error: 'The tenant a became unhealthy with the new image.' },
    },
    {
      what: 'unhealthy while it starts',
      rollout: rollout({ wave: 1, tenants: [moved('a')] }),
      subjects: [upgraded('a')],
      health: { a: 'unhealthy' },
      step: { do: 'wait' },
    },
    {
      what: 'its reconciliation failed',
      rollout: rollout({ wave: 1, tenants: [moved('a')] }),
      subjects: [upgraded('a', { status: 'failed', observedGeneration: 1 })],
      step: { do: 'roll-back', error: 'The tenant a failed with the new image.' },
    },
    {
      what: 'a tenant of an earlier wave failed',
      rollout: rollout({ wave: 2, tenants: [moved('a', { state: 'moved' }), moved('b', { wave: 2 })] }),
      subjects: [upgraded('a', { status: 'failed' }), upgraded('b')],
      step: { do: 'roll-back', error: 'The tenant a failed with the new image.' },
    },
    {
      what: 'a tenant that was not running before the rollout failed',
      rollout: rollout({ wave: 1, tenants: [moved('a', { wave: 0, state: 'moved' })] }),
      subjects: [upgraded('a', { status: 'failed' })],
      step: { do: 'finish', state: 'succeeded', error: undefined },
    },
    {
      what: 'not ready in time',
      rollout: rollout({ wave: 1, tenants: [moved('a')] }),
      subjects: [upgraded('a', { observedGeneration: 1 })],
      now: 60,
      step: { do: 'roll-back', error: 'The tenant a was not healthy with the new image within 60 s.' },
    },
    {
      what: 'not ready in time, but no control plane observed most of that time',
      rollout: rollout({ wave: 1, tenants: [moved('a')] }),
      subjects: [upgraded('a', { observedGeneration: 1 })],
      now: 60,
      since: 1,
      step: { do: 'wait' },
    },
    {
      what: 'late, but healthy',
      rollout: rollout({ wave: 1, tenants: [moved('a')] }),
      subjects: [upgraded('a')],
      health: { a: 'healthy' },
      now: 60,
      step: { do: 'record', tenants: [moved('a', { wellSince: at(60) })] },
    },
    {
      what: 'deleted meanwhile',
      rollout: rollout({ wave: 1, tenants: [moved('a')] }),
      subjects: [],
      step: { do: 'record', tenants: [moved('a', { state: 'gone' })] },
    },
    {
      what: 'paused meanwhile',
      rollout: rollout({ wave: 1, tenants: [moved('a')] }),
      subjects: [upgraded('a', paused)],
      step: { do: 'record', tenants: [moved('a', { state: 'moved' })] },
    },
    {
      what: 'changed by its operator meanwhile, and healthy',
      rollout: rollout({ wave: 1, soakSeconds: 0, tenants: [moved('a')] }),
      subjects: [upgraded('a', { generation: 3, observedGeneration: 3 })],
      health: { a: 'healthy' },
      step: { do: 'record', tenants: [moved('a', { wellSince: at(20), state: 'moved' })] },
    },
    {
      what: 'rollback: all moved tenants return',
      rollout: rollout({ state: 'rolling_back', error: 'e', tenants: [moved('a', { state: 'moved' }), moved('b')] }),
      subjects: [upgraded('a'), upgraded('b', { operations: ['upgrade'] })],
      step: { do: 'return', tenantIds: ['a', 'b'] },
    },
    {
      what: 'rollback: the plan waits for a backup',
      rollout: rollout({ state: 'rolling_back', error: 'e', tenants: [moved('a', { state: 'moved' })] }),
      subjects: [upgraded('a', { operations: ['upgrade', 'backup'] })],
      step: { do: 'wait' },
    },
    {
      what: 'rollback: not ready yet',
      rollout: rollout({
        state: 'rolling_back',
        error: 'e',
        tenants: [moved('a', { state: 'returning', generation: 3 })],
      }),
      subjects: [subject('a', { generation: 3, observedGeneration: 2 })],
      step: { do: 'wait' },
    },
    {
      what: 'rollback: returned',
      rollout: rollout({
        state: 'rolling_back',
        error: 'e',
        tenants: [moved('a', { state: 'returning', generation: 3 })],
      }),
      subjects: [subject('a', { generation: 3, observedGeneration: 3 })],
      step: { do: 'record', tenants: [moved('a', { state: 'returned', generation: 3 })] },
    },
    {
      what: 'rollback: failed, but perhaps still with the new image',
      rollout: rollout({
        state: 'rolling_back',
        error: 'e',
        tenants: [moved('a', { state: 'returning', generation: 3 })],
      }),
      subjects: [subject('a', { status: 'failed', generation: 3, observedGeneration: 1 })],
      now: 209,
      step: { do: 'wait' },
    },
    {
      what: 'rollback: slow, but not failed',
      rollout: rollout({
        state: 'rolling_back',
        error: 'e',
        tenants: [moved('a', { state: 'returning', generation: 3 })],
      }),
      subjects: [subject('a', { generation: 3, observedGeneration: 1 })],
      now: 1000,
      step: { do: 'wait' },
    },
    {
      what: 'rollback: failed beyond its deadline',
      rollout: rollout({
        state: 'rolling_back',
        error: 'e',
        tenants: [moved('a', { state: 'returning', generation: 3 })],
      }),
      subjects: [subject('a', { status: 'failed', generation: 3, observedGeneration: 1 })],
      now: 210,
      step: { do: 'record', tenants: [moved('a', { state: 'lost', generation: 3 })] },
    },
    {
      what: 'rollback: all returned',
      rollout: rollout({
        state: 'rolling_back',
        error: 'e',
        tenants: [moved('a', { state: 'returned' }), moved('b', { state: 'gone' })],
      }),
      subjects: [subject('a')],
      step: { do: 'finish', state: 'rolled_back', error: 'e' },
    },
    {
      what: 'rollback: all but one returned',
      rollout: rollout({ state: 'rolling_back', error: 'e', tenants: [moved('a', { state: 'lost' })] }),
      subjects: [subject('a')],
      step: { do: 'finish', state: 'failed', error: 'e Tenants that are not healthy with the former image either: a.' },
    },
    {
      what: 'cancelled before any tenant moved',
      rollout: rollout({ state: 'rolling_back', error: 'e' }),
      subjects: [subject('a')],
      step: { do: 'finish', state: 'rolled_back', error: 'e' },
    },
  ]
  for (const { what, rollout, subjects, health = {}, since = 0, now = 20, step } of cases) {
    t.same(
      planRollout(rollout, { subjects, health: new Map(Object.entries(health)), since: at(since) }, at(now)),
      step,
      what,
    )
  }
})

t.test('waves double up to the wave size', async (t) => {
  const subjects = Array.from({ length: 100 }, (_, index) => subject(`t${index}`))
  const sizes = Array.from({ length: 7 }, (_, wave) => {
    const step = planRollout(rollout({ wave, waveSize: 12 }), { subjects, health: new Map(), since: at(0) }, at(0))
    return step.do === 'move' ? step.tenantIds.length : 0
  })
  t.same(sizes, [1, 2, 4, 8, 12, 12, 12])
})
