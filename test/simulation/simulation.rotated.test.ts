// The reconciler in a simulated world with random faults. The invariants hold after every step, and in the end every tenant is
// in its desired state. TENANTRY_SIMULATION_SEED=n replays one run with its complete trace.
import t from 'tap'
import { failpointNames } from '#control-plane/reconcile/failpoints.ts'
import { effort, seed as base } from '#test/support/effort.ts'
import type { Defects } from './defects.ts'
import { simulate, type Outcome } from './simulation.ts'

const replayed = process.env['TENANTRY_SIMULATION_SEED']
const runs = effort({ small: 150, full: 20_000 })
/** Number of runs within which a planted defect must be found. */
const maxRunsPerDefect = 200
const maxFailures = 5

/** Lets the process handle its events between two runs; within a run the queue of promises is never empty. */
const yieldToEventLoop = () => new Promise((resolve) => setImmediate(resolve))

function howToReplay({ seed, failure, trace }: Outcome): string {
  return [
    `seed ${seed}: ${failure ?? ''}`,
    ...trace,
    `replay: TENANTRY_SIMULATION_SEED=${seed} node test/simulation/simulation.rotated.test.ts`,
  ].join('\n')
}

async function firstFailure(defects: Defects): Promise<Outcome | undefined> {
  for (let seed = base; seed < base + maxRunsPerDefect; seed++) {
    const outcome = await simulate(seed, defects)
    if (outcome.failure !== undefined) return outcome
    await yieldToEventLoop()
  }
  return undefined
}

if (replayed !== undefined) {
  t.test(`The run with seed ${replayed} has no failure`, async (t) => {
    const { failure } = await simulate(Number(replayed), {}, (line) => t.comment(line))
    t.equal(failure, undefined)
  })
} else {
  t.test(
    'The invariants hold under random faults, and all tenants reach their desired state',
    { timeout: 4 * 3_600_000 },
    async (t) => {
      const total = { events: 0, seconds: 0, crashes: 0, leaders: 0, tenants: 0, failed: 0 }
      const failpoints = new Set<string>()
      const failures: number[] = []
      for (let seed = base; seed < base + runs && failures.length < maxFailures; seed++) {
        const outcome = await simulate(seed)
        if (outcome.failure !== undefined) {
          failures.push(seed)
          t.comment(howToReplay(outcome))
        }
        total.events += outcome.events
        total.seconds += outcome.seconds
        total.crashes += outcome.crashes
        total.leaders += outcome.leaders
        total.tenants += outcome.tenants
        total.failed += outcome.failedTenants
        for (const name of outcome.failpoints) failpoints.add(name)
        await yieldToEventLoop()
      }
      t.comment(`${runs} runs from seed ${base}: ${JSON.stringify(total)}`)
      t.same(failures, [])
      t.same([...failpoints].sort(), [...failpointNames].sort(), 'the runs reach every failpoint')
      t.ok(total.crashes > runs / 2 && total.leaders > runs, 'control planes die and replace each other')
    },
  )

  t.test('The same seed gives the same run, and another seed gives another run', async (t) => {
    const [first, again, other] = [await simulate(base), await simulate(base), await simulate(base + 1)]
    t.equal(again.hash, first.hash)
    t.equal(again.events, first.events)
    t.not(other.hash, first.hash)
  })

  const defects: [string, Defects, RegExp][] = [
    ['a plan that creates a lost volume again', { losesData: true }, /an empty .* in place of/],
    ['an engine that trusts names instead of labels', { ignoresLabels: true }, /the foreign \w+ .* was/],
    ['a store that accepts writes of a former leader', { ignoresEpoch: true }, /the leader of epoch \d+ wrote/],
    ['a database that starts before the old one stops', { startsDatabasesFirst: true }, /run on the volume/],
    ['a runtime that is trusted without a request', { believesRuntimes: true }, /without an observation as healthy/],
    ['a Postgres that creates a cluster in any empty volume', { beginsAnywhere: true }, /an empty database began in/],
    ['a network that is not removed', { leavesNetworks: true }, /was freed while .* is there/],
  ]
  for (const [what, planted, expected] of defects) {
    t.test(`The simulation finds ${what}`, async (t) => {
      const outcome = await firstFailure(planted)
      t.match(outcome?.failure, expected)
      t.comment(`run ${(outcome?.seed ?? 0) - base + 1}: ${outcome?.failure ?? ''}`)
    })
  }
}
