// The reconciler in a simulated world with random faults. The invariants hold after every step, and in the end every tenant is
// in its desired state. TENANTRY_SIMULATION_SEED=n replays one run with its complete trace.
import t from 'tap'
import { failpointNames, regionFailpointNames } from '#control-plane/reconcile/failpoints.ts'
import { effort } from '#test/support/effort.ts'
import type { Defects } from './defects.ts'
import { checkDefect, checkRepeatable, checkRuns, replayedSeed } from './runs.ts'
import { simulate } from './simulation.ts'

const runs = effort({ small: 150, full: 20_000 })
const file = 'test/simulation/simulation.rotated.test.ts'

if (replayedSeed !== undefined) {
  t.test(`The run with seed ${replayedSeed} has no failure`, async (t) => {
    const { failure } = await simulate(Number(replayedSeed), {}, (line) => t.comment(line))
    t.equal(failure, undefined)
  })
} else {
  t.test(
    'The invariants hold under random faults, and all tenants reach their desired state',
    { timeout: 4 * 3_600_000 },
    (t) => checkRuns(t, runs, (seed) => simulate(seed), [...failpointNames, ...regionFailpointNames], file),
  )

  t.test('The same seed gives the same run, and another seed gives another run', (t) =>
    checkRepeatable(t, (seed) => simulate(seed)),
  )

  const defects: [string, Defects, RegExp][] = [
    ['a plan that creates a lost volume again', { losesData: true }, /an empty .* in place of/],
    ['an engine that trusts names instead of labels', { ignoresLabels: true }, /the foreign \w+ .* was/],
    ['a store that accepts writes of a former leader', { ignoresEpoch: true }, /the leader of epoch \d+ wrote/],
    ['a database that starts before the old one stops', { startsDatabasesFirst: true }, /run on the volume/],
    ['a runtime that is trusted without a request', { believesRuntimes: true }, /without an observation as healthy/],
    ['a Postgres that creates a cluster in any empty volume', { beginsAnywhere: true }, /an empty database began in/],
    ['a network that is not removed', { leavesNetworks: true }, /was freed while .* is there|remains/],
  ]
  for (const [what, planted, expected] of defects)
    t.test(`The simulation finds ${what}`, (t) => checkDefect(t, (seed) => simulate(seed, planted), expected))
}
