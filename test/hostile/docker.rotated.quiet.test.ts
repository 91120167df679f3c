// The attacks of hostile.test.ts on a platform on a Docker Engine: between tenants that share the Postgres and the runtime of
// their region, and between tenants with their own. Small runs carry out some of them, full runs all. Arguments select
// attacks by a part of their names, an empty one all.
import { setPriority } from 'node:os'
import t from 'tap'
import { startDockerPlatform, testEngine } from '#test/support/docker-platform.ts'
import { checkTable, dockerTable } from './support/attack-tables.ts'
import { dockerPlatform } from './support/platform.ts'
import { attackPlatform, chooseAttacks, platformEnvironment, timeout, type SuiteOutcome } from './support/suite.ts'

const words = process.argv.slice(2)
const suites: SuiteOutcome[] = []

t.setTimeout(timeout)
t.test('No attack on a Docker region harms others', { timeout }, async (t) => {
  const platform = await startDockerPlatform({ environment: platformEnvironment })
  t.teardown(() => platform.stop())
  for (const target of ['shared Postgres', 'own Postgres'] as const) {
    const chosen = chooseAttacks(target, words)
    if (chosen.length === 0) continue
    // The probe must not inherit the attacker's priority. Tests with a Docker Engine run as root, who may raise it.
    setPriority(0)
    await t.test(`Between tenants with ${target === 'own Postgres' ? 'their' : 'a'} ${target}`, async (t) => {
      suites.push(await attackPlatform(t, dockerPlatform(platform, testEngine(), target), chosen))
    })
  }
})

t.test('docs/security.md lists the attacks on a Docker region', (t) => checkTable(t, dockerTable, suites))
