// Drift, field by field: it names each change, and is empty exactly when the convergence plan is empty.
import * as fc from 'fast-check'
import t from 'tap'
import { differences } from '#control-plane/engines/drift.ts'
import { planSteps } from '#control-plane/engines/convergence-plan.ts'
import type { Stack } from '#control-plane/stacks/stack.ts'
import { effort, seed } from '#test/support/effort.ts'
import type { Changeable } from '#test/support/control-plane/made-stack.ts'
import { changes, container, restarted, stack, stopped, whole } from './support/changes.ts'

/** Returns the differences by field, as `desired → observed`. */
const driftOf = (of: Stack, host: Changeable) =>
  Object.fromEntries(
    differences(of, host).map(({ component, field, desired, observed }) => [
      `${component} ${field}`,
      `${String(desired)} → ${String(observed)}`,
    ]),
  )

t.test('Each manual change is reported as drift by its field', (t) => {
  for (const [what, change, wanted] of changes) {
    const host = whole(stack)
    change(host)
    t.same(driftOf(stack, host), wanted, what)
  }
  const host = whole(stack)
  Object.assign(container(host), { imageId: 'sha256:cc' })
  t.same(driftOf(stack, host), { 'postgres image': 'sha256:aa → sha256:cc' }, 'another image under the same name')
  t.end()
})

t.test('A container of an earlier specification is reported as drift by that', (t) => {
  const before = driftOf(restarted, whole(stack))
  t.match(
    Object.keys(before).filter((field) => field.endsWith('specification')),
    ['postgres specification', 'runtime specification'],
  )
  const both = whole(stack)
  both.containers.push(...whole(restarted).containers)
  t.same(
    Object.keys(driftOf(restarted, both)).filter((field) => field.startsWith('container/')).length,
    2,
    'next to its successor it is surplus',
  )
  t.end()
})

t.test('A stopped stack needs its volumes, but no containers', (t) => {
  t.same(driftOf(stopped, whole(stopped)), {})
  t.same(driftOf(stopped, { ...whole(stopped), containers: [] }), {}, 'no container is needed')
  t.same(driftOf(stopped, whole(stack)), {
    'postgres state': 'stopped → running',
    'runtime state': 'stopped → running',
  })
  const torn = whole(stopped)
  torn.volumes = []
  t.same(driftOf(stopped, torn), {
    'volume/data existence': 'present → absent',
    'volume/files existence': 'present → absent',
  })
  t.end()
})

t.test('Drift contains no secret', (t) => {
  const text =
    JSON.stringify(differences(stack, { containers: [], networks: [], volumes: [], unlabelledVolumes: [] })) +
    JSON.stringify(differences(restarted, whole(stack)))
  for (const service of stack.services) {
    for (const secret of Object.values(service.secrets))
      t.notOk(text.includes(secret.reveal()), `${service.name}'s secret`)
  }
  t.end()
})

const numRuns = effort({ small: 2_000, full: 50_000 })

t.test('There is drift exactly when the plan has steps, after any combination of changes', (t) => {
  const isPlanned = (of: Stack, host: Changeable) => {
    try {
      return planSteps(of, host).length > 0
    } catch {
      // A missing volume cannot be repaired.
      return true
    }
  }
  const property = fc.property(
    fc.constantFrom(stack, stopped, restarted),
    fc.constantFrom(stack, stopped, restarted),
    fc.subarray(changes),
    (wanted, existing, happened) => {
      const host = whole(existing)
      for (const [, change] of happened) if (host.containers.length > 0) change(host)
      return differences(wanted, host).length > 0 === isPlanned(wanted, host)
    },
  )
  fc.assert(property, { numRuns, seed })
  t.pass(`${numRuns} hosts, seed ${seed}`)
  t.end()
})
