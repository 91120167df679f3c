// Every screen of the console in its dark theme. `screens.rotated.test.ts` checks the light one.
import t from 'tap'
import { controlCall } from '#test/support/control-call.ts'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { checkScreens } from './support/check-screens.ts'
import { openBrowser } from './support/open-console.ts'

const installation = await startInstallation({ environment: { TENANTRY_PRICES_FILE: 'examples/prices.json' } })
t.teardown(() => removeInstallation(installation))
const browser = await openBrowser(t)
const tenant = { name: 'acme', plan: 'Pro', region: 'local' }
const { tenant_id: tenantId } = (await controlCall(installation, 'POST', '/v1/tenants', tenant)) as {
  tenant_id: string
}

t.test('axe finds nothing serious on any dark screen, and no screen is wider than 360 px', (t) =>
  checkScreens(t, { installation, browser, tenantId, colorScheme: 'dark' }),
)
