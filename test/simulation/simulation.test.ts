// The reconciler in a simulated world, whose faults all follow from one number: whatever happens, the invariants hold after
// every step, and in the end everything is as it should be. TENANTRY_SIMULATION_SEED=n replays one run with its whole trace.
import t from 'tap'
import { failpointNames } from '#control-plane/reconcile/failpoints.ts'
import { effort, seed as base } from '#test/support/effort.ts'
import type { Defects } from './defects.ts'
import { simulate, type Outcome } from './simulation.ts'

const replayed = process.env['TENANTRY_SIMULATION_SEED']
const runs = effort({ small: 150, full: 20_000 })
/** Within how many runs a planted defect must show. */
const timeout = 200
const maxFailures = 5

/** The queue of promises is never empty within a run; the process gets its turn between two. */
const breathe = () => new Promise((resolve) => setImmediate(resolve))

function howToReplay({ seed, failure, trace }: Outcome): string {
  return [
    `seed ${seed}: ${failure ?? ''}`,
    ...trace,
    `replay: TENANTRY_SIMULATION_SEED=${seed} node test/simulation/simulation.test.ts`,
  ].join('\n')
}

async function firstFailure(defects: Defects): Promise<Outcome | undefined> {
  for (let seed = base; seed < base + timeout; seed++) {
    const outcome = await simulate(seed, defects)
    if (outcome.failure !== undefined) return outcome
    await breathe()
  }
  return undefined
}

if (replayed !== undefined) {
  t.test(`seed ${replayed}`, async (t) => {
    const { failure } = await simulate(Number(replayed), {}, (line) => t.comment(line))
    t.equal(failure, undefined)
  })
} else {
  t.test(
    'whatever goes wrong, the invariants hold and everything ends as it should',
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
        await breathe()
      }
      t.comment(`${runs} runs from seed ${base}: ${JSON.stringify(total)}`)
      t.same(failures, [])
      t.same([...failpoints].sort(), [...failpointNames].sort(), 'every failpoint was passed')
      t.ok(total.crashes > runs / 2 && total.leaders > runs, 'control planes died and took over from each other')
    },
  )

  t.test('the same seed gives the same run, and another one another', async (t) => {
    const [first, again, other] = [await simulate(base), await simulate(base), await simulate(base + 1)]
    t.equal(again.hash, first.hash)
    t.equal(again.events, first.events)
    t.not(other.hash, first.hash)
  })

  const defects: [string, Defects, RegExp][] = [
    ['a plan that makes a lost volume anew', { losesData: true }, /an empty .* in place of/],
    ['an engine that takes names for labels', { ignoresLabels: true }, /the foreign \w+ .* was/],
    ['a store that takes writes of a former leader', { ignoresEpoch: true }, /the leader of epoch \d+ wrote/],
    ['a database that is started beside the old one', { startsDatabasesFirst: true }, /run on the volume/],
    ['a runtime that is believed unseen', { believesRuntimes: true }, /nobody had seen it well/],
    ['a Postgres that begins on any empty volume', { beginsAnywhere: true }, /an empty database began in/],
    ['a network that is left behind', { leavesNetworks: true }, /was freed while .* is there/],
  ]
  for (const [what, planted, expected] of defects) {
    t.test(`the simulation sees ${what}`, async (t) => {
      const outcome = await firstFailure(planted)
      t.match(outcome?.failure, expected)
      t.comment(`run ${(outcome?.seed ?? 0) - base + 1}: ${outcome?.failure ?? ''}`)
    })
  }
}
