// The reconciler in a simulated region on several hosts, which lose their power, are cut off, are emptied, and are replaced by others or by
// empty machines. No confirmed home is lost, and in the end every tenant is in its desired state. TENANTRY_SIMULATION_SEED=n replays one
// run with its complete trace.
import t from 'tap'
import {
  clusterFailpointNames,
  failpointNames,
  placementFailpointNames,
  regionClusterFailpointNames,
  regionFailpointNames,
} from '#control-plane/reconcile/failpoints.ts'
import { effort } from '#test/support/effort.ts'
import { checkDefect, checkRepeatable, checkRuns, replayedSeed } from './runs.ts'
import type { HostDefects } from './several-hosts/defects.ts'
import { simulateSeveralHosts } from './several-hosts/simulation.ts'

const runs = effort({ small: 240, full: 20_000 })
const file = 'test/simulation/several-hosts.rotated.test.ts'

if (replayedSeed !== undefined) {
  t.test(`The run with seed ${replayedSeed} has no failure`, async (t) => {
    const { failure } = await simulateSeveralHosts(Number(replayedSeed), {}, (line) => t.comment(line))
    t.equal(failure, undefined)
  })
} else {
  t.test(
    'No confirmed home is lost under faults of hosts, and all tenants reach their desired state',
    { timeout: 12 * 3_600_000 },
    (t) =>
      checkRuns(
        t,
        runs,
        (seed) => simulateSeveralHosts(seed),
        [
          ...failpointNames,
          ...placementFailpointNames,
          ...clusterFailpointNames,
          ...regionFailpointNames,
          ...regionClusterFailpointNames,
        ],
        file,
      ),
  )

  t.test('The same seed gives the same run, and another seed gives another run', (t) =>
    checkRepeatable(t, (seed) => simulateSeveralHosts(seed)),
  )

  const defects: [string, HostDefects, RegExp][] = [
    [
      'an engine that changes all members of a cluster at once',
      { changesAllAtOnce: true },
      /was ended, and|could not be brought/,
    ],
    [
      'an engine that removes data from former hosts before others have it',
      { removesFormerAtOnce: true },
      /was removed with|was ended, and|could not be brought/,
    ],
    ['a member of etcd that gets an empty volume without a new ID', { replacesNoMember: true }, /etcd has 2 members/],
    [
      'an engine whose containers keep the address of another one',
      { keepsSharedAddresses: true },
      /is not ready|lost|has no primary/,
    ],
    ['a removal that ends after the containers', { removesHalf: true }, /was freed while .* is there|remains/],
  ]
  for (const [what, planted, expected] of defects)
    t.test(`The simulation finds ${what}`, (t) =>
      checkDefect(t, (seed) => simulateSeveralHosts(seed, planted), expected),
    )
}
