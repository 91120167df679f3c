// The repair of chosen fields: it ends their differences and those that it announces, and changes nothing else.
import * as fc from 'fast-check'
import t from 'tap'
import { type Difference, differences } from '#control-plane/engines/drift.ts'
import { memberName } from '#control-plane/engines/member-name.ts'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import { isTargeted, planRepair, repairOf } from '#control-plane/engines/repair-plan.ts'
import type { Stack } from '#control-plane/stacks/stack.ts'
import { effort, seed } from '#test/support/effort.ts'
import { applyStep } from '#test/support/control-plane/apply-step.ts'
import type { Changeable } from '#test/support/control-plane/made-stack.ts'
import { changes, container, id, restarted, size, stack, stopped, whole } from './support/changes.ts'

const nameOf = ({ component, field }: Difference) => `${component} ${field}`

/** Repairs one difference of a host. @returns the names of the steps */
function repair(of: Stack, host: Changeable, difference: Difference): string[] {
  const { targets } = repairOf(of, host, difference)
  const taken: string[] = []
  for (let round = 0; round < 20; round++) {
    const steps = planRepair(of, structuredClone(host), targets)
    if (steps.length === 0) return taken
    for (const step of steps) {
      applyStep(of, host, step)
      taken.push(step.do)
    }
  }
  throw new Error(`The repair of ${nameOf(difference)} has no end: ${taken.join(', ')}`)
}

/** Returns the difference of this name. */
function named(of: Stack, host: Changeable, name: string): Difference {
  const found = differences(of, host).find((one) => nameOf(one) === name)
  if (found === undefined) throw new Error(`There is no difference ${name}.`)
  return found
}

t.test('One limit of a container is set alone, without an interruption', (t) => {
  const host = whole(stack)
  Object.assign(container(host), { resources: { memoryBytes: 5, cpuMillis: 6, pids: 7 }, restartPolicy: 'no' })
  const memory = named(stack, host, 'postgres memory_bytes')
  t.same(repairOf(stack, host, memory), {
    targets: [{ component: 'postgres', field: 'memory_bytes' }],
    interrupts: false,
  })
  t.same(repair(stack, host, memory), ['update-resources'])
  t.same(container(host).resources, { ...size, cpuMillis: 6, pids: 7 })
  t.equal(container(host).restartPolicy, 'no')
  t.same(repair(stack, host, named(stack, host, 'postgres restart_policy')), ['update-resources'])
  t.same(container(host).resources, { ...size, cpuMillis: 6, pids: 7 })
  t.end()
})

t.test('A container that must be replaced takes its other fields with it, and says whether it interrupts', (t) => {
  const host = whole(stack)
  Object.assign(container(host), { resources: { ...size, cpuMillis: 6 } })
  Object.assign(container(host, 1), { resources: { ...size, cpuMillis: 6 } })
  const postgres = named(restarted, host, 'postgres specification')
  t.equal(repairOf(restarted, host, postgres).interrupts, true, 'two servers never share a volume')
  t.equal(repairOf(restarted, host, named(restarted, host, 'runtime specification')).interrupts, false)
  repair(restarted, host, postgres)
  t.same(
    differences(restarted, host)
      .map(nameOf)
      .filter((name) => name.startsWith('postgres')),
    [],
  )
  t.ok(differences(restarted, host).some((one) => nameOf(one) === 'runtime specification'))
  t.end()
})

t.test('A container whose address another one has is connected again', (t) => {
  const host = whole(stack)
  const [network] = host.networks
  if (network === undefined) throw new Error('no network')
  network.addresses = { [memberName({ container: container(host).name })]: '10.0.0.2', another: '10.0.0.2' }
  const [shared, ...rest] = differences(stack, host)
  if (shared === undefined) throw new Error('no difference')
  t.same(rest, [])
  t.match(shared, { component: 'postgres', field: /^address on /, desired: 'unique', observed: 'shared' })
  t.equal(repairOf(stack, host, shared).interrupts, true)
  t.same(repair(stack, host, shared), ['disconnect-container', 'connect-container'])
  t.same(differences(stack, host), [])
  t.end()
})

t.test('A stopped container without its network is put on it before it starts', (t) => {
  const host = whole(stack)
  Object.assign(container(host, 1), { state: 'exited', networks: {}, resources: { ...size, pids: 7 } })
  t.same(repair(stack, host, named(stack, host, 'runtime state')), ['connect-container', 'start-container'])
  t.same(differences(stack, host).map(nameOf), ['runtime pids'])
  t.end()
})

t.test('A lost volume with data is reported and never replaced', (t) => {
  const host = whole(stack)
  host.volumes = host.volumes.filter(({ name }) => name !== `tenantry-${id}-data`)
  const lost = named(stack, host, 'volume/data existence')
  t.throws(() => repair(stack, host, lost), { code: 'VOLUME_MISSING' })
  t.end()
})

const numRuns = effort({ small: 2_000, full: 50_000 })

t.test('After any changes, the repair of any difference ends what it announces, and leaves all others', (t) => {
  const property = fc.property(
    fc.constantFrom(stack, stopped, restarted),
    fc.constantFrom(stack, stopped, restarted),
    fc.subarray(changes),
    fc.nat(),
    (wanted, existing, happened, choice) => {
      const host = whole(existing)
      for (const [, change] of happened) if (host.containers.length > 0) change(host)
      const before = differences(wanted, host)
      const chosen = before[choice % Math.max(before.length, 1)]
      if (chosen === undefined) return true
      const { targets } = repairOf(wanted, host, chosen)
      if (!isTargeted(targets, chosen)) throw new Error(`${nameOf(chosen)} is not in its own repair`)
      try {
        repair(wanted, host, chosen)
      } catch (error) {
        if (error instanceof EngineError && error.code === 'VOLUME_MISSING') return true
        throw error
      }
      const after = differences(wanted, host)
      const left = after.filter((one) => isTargeted(targets, one)).map(nameOf)
      if (left.length > 0) throw new Error(`The repair of ${nameOf(chosen)} has left ${left.join(', ')}`)
      const lost = before.filter(
        (one) => !isTargeted(targets, one) && !after.some((two) => nameOf(two) === nameOf(one)),
      )
      if (lost.length > 0)
        throw new Error(`The repair of ${nameOf(chosen)} has also ended ${lost.map(nameOf).join(', ')}`)
      const added = after.filter((one) => !before.some((two) => nameOf(two) === nameOf(one)))
      if (added.length > 0) throw new Error(`The repair of ${nameOf(chosen)} has added ${added.map(nameOf).join(', ')}`)
      return true
    },
  )
  fc.assert(property, { numRuns, seed })
  t.pass(`${numRuns} hosts, seed ${seed}`)
  t.end()
})
