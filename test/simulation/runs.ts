// How the tests of the simulation run it: with many seeds, with planted defects, and again with one seed.
import type { Test } from 'tap'
import { seed as base } from '#test/support/effort.ts'
import type { Outcome } from './simulation.ts'

/** Number of runs in which a planted defect must be found. */
const maxRunsPerDefect = 200
const maxFailures = 5

/** The seed that a person replays; undefined for a test of many. */
export const replayedSeed = process.env['TENANTRY_SIMULATION_SEED']

/** Lets the process handle its events between two runs; during a run the queue of promises is never empty. */
const yieldToEventLoop = () => new Promise((resolve) => setImmediate(resolve))

/** Runs a simulation without the stacks of errors, which take time to create. A replayed run has them. */
async function quickly(simulate: (seed: number) => Promise<Outcome>, seed: number): Promise<Outcome> {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return await simulate(seed)
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

function howToReplay({ seed, failure, trace }: Outcome, file: string): string {
  return [`seed ${seed}: ${failure ?? ''}`, ...trace, `replay: TENANTRY_SIMULATION_SEED=${seed} node ${file}`].join(
    '\n',
  )
}

/** Runs many seeds, and checks that none fails and that together they reach the failpoints. */
export async function checkRuns(
  t: Test,
  runs: number,
  simulate: (seed: number) => Promise<Outcome>,
  failpointNames: readonly string[],
  file: string,
): Promise<void> {
  const total = { events: 0, seconds: 0, crashes: 0, leaders: 0, tenants: 0, failed: 0 }
  const failpoints = new Set<string>()
  const failures: number[] = []
  for (let seed = base; seed < base + runs && failures.length < maxFailures; seed++) {
    const outcome = await quickly(simulate, seed)
    if (outcome.failure !== undefined) {
      failures.push(seed)
      t.comment(howToReplay(outcome, file))
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
}

/** Checks that runs with a planted defect fail as expected. */
export async function checkDefect(
  t: Test,
  simulate: (seed: number) => Promise<Outcome>,
  expected: RegExp,
): Promise<void> {
  for (let seed = base; seed < base + maxRunsPerDefect; seed++) {
    const outcome = await quickly(simulate, seed)
    if (outcome.failure !== undefined) {
      t.match(outcome.failure, expected)
      t.comment(`run ${seed - base + 1}: ${outcome.failure}`)
      return
    }
    await yieldToEventLoop()
  }
  t.fail(`${maxRunsPerDefect} runs do not find it`)
}

/** Checks that a seed determines a run. */
export async function checkRepeatable(t: Test, simulate: (seed: number) => Promise<Outcome>): Promise<void> {
  const [first, again, other] = [await simulate(base), await simulate(base), await simulate(base + 1)]
  t.equal(again.hash, first.hash)
  t.equal(again.events, first.events)
  t.not(other.hash, first.hash)
}
