// Attacks of tenants and unauthenticated clients on a whole installation, while a probe requests a neighbour's data and the
// control plane: no request of others fails, memory stays bounded, the attacker gets a clear error, and everything is normal
// again afterwards. Arguments select attacks by a part of their names.
import t from 'tap'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { localPlatform } from './support/platform.ts'
import { checkTable, localTable } from './support/attack-tables.ts'
import { attackPlatform, chooseAttacks, platformEnvironment, timeout, type SuiteOutcome } from './support/suite.ts'

const words = process.argv.slice(2)
const suites: SuiteOutcome[] = []

t.setTimeout(timeout)
t.test('No attack harms others', { timeout }, async (t) => {
  // All tenants share one runtime, so that each attack reaches the neighbour's.
  const installation = await startInstallation({ logLevel: 'warn', runtimes: 1, environment: platformEnvironment })
  t.teardown(() => removeInstallation(installation))
  suites.push(await attackPlatform(t, localPlatform(installation), chooseAttacks('npm start', words)))
})

t.test('docs/security.md lists the attacks', (t) => checkTable(t, localTable, suites))
