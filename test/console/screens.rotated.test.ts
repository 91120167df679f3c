// Every screen of the console: accessible, within its width, without text of tenants as HTML, and small. It uses the light theme;
// `dark-screens.rotated.test.ts` checks the dark one.
import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import t from 'tap'
import { controlCall } from '#test/support/control-call.ts'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { checkScreens } from './support/check-screens.ts'
import { openBrowser, openConsole, signIn } from './support/open-console.ts'
import { firstLoad, openScreen, scripts } from './support/page-checks.ts'

const require = createRequire(import.meta.url)
const naughtyStrings = require('big-list-of-naughty-strings') as string[]
const hostile = [...scripts, ...naughtyStrings.filter((text) => text !== '')]

const installation = await startInstallation({ environment: { TENANTRY_PRICES_FILE: 'examples/prices.json' } })
t.teardown(() => removeInstallation(installation))
const { controlUrl, platformKey } = installation
const browser = await openBrowser(t)

const { tenant_id: tenantId } = (await controlCall(installation, 'POST', '/v1/tenants', {
  name: 'acme',
  plan: 'Pro',
  region: 'local',
})) as {
  tenant_id: string
}

const show = (page: Page, address: string) => openScreen(page, `${controlUrl}/${address}`)

t.test('The first load has at most 60 kB, compressed with gzip, and nothing of another site', async (t) => {
  const built = new URL('../../console/built/', import.meta.url)
  const { files, bytes } = await firstLoad(built, '/console/')
  t.same(files.length, 2)
  t.ok(bytes <= 60_000, `${bytes} bytes`)
  t.ok(
    (await readdir(built)).some((name) => /^draw-.*\.js$/.test(name)),
    'the charts are loaded later',
  )
})

t.test('axe finds nothing serious on any screen, and no screen is wider than 360 px', (t) =>
  checkScreens(t, { installation, browser, tenantId, colorScheme: 'light' }),
)

t.test('Texts of others are shown as text: names, reasons, keys, webhooks, the audit log', async (t) => {
  const opened = await openConsole(browser, controlUrl)
  const { page, violations } = opened
  await signIn(opened, platformKey)
  const [script = '', image = ''] = scripts
  await controlCall(installation, 'POST', '/v1/keys', { name: image, scope: 'read' })
  await controlCall(installation, 'PATCH', `/v1/tenants/${tenantId}`, { suspended: true, suspend_reason: script })
  await show(page, '#/keys')
  await page.getByText(image, { exact: true }).waitFor()
  await show(page, `#/tenants/${tenantId}`)
  await page.getByText(script).first().waitFor()
  await show(page, '#/audit')
  await page.getByText('suspend_reason').first().waitFor()
  await controlCall(installation, 'PATCH', `/v1/tenants/${tenantId}`, { suspended: false })

  // Names of tenants cannot contain these texts, so the response is replaced on its way to the page.
  const { tenants } = (await controlCall(installation, 'GET', '/v1/tenants')) as { tenants: Record<string, unknown>[] }
  await page.route('**/v1/tenants?*', (route) =>
    route.fulfill({
      json: {
        tenants: hostile.map((name, nth) => ({
          ...tenants[0],
          name,
          reason: name,
          tenant_id: `t_${String(nth).padStart(20, '0')}`,
        })),
        next_cursor: null,
      },
    }),
  )
  await show(page, '#/fleet')
  const names = () =>
    page.getByRole('region', { name: 'Tenants', exact: true }).locator('td:first-child a').allTextContents()
  t.same(await names(), hostile)
  t.same(await page.evaluate('window.attacked'), undefined)
  t.same(violations, [])
  await page.context().close()
})

t.test('Lines of logs are shown as text, and the search and the download have them unchanged', async (t) => {
  const opened = await openConsole(browser, controlUrl)
  const { page, violations } = opened
  await signIn(opened, platformKey)
  const tenant = await controlCall(installation, 'GET', `/v1/tenants/${tenantId}`)
  // `npm start` has no tenants with services of their own.
  await page.route(`**/v1/tenants/${tenantId}`, (route) =>
    route.fulfill({ json: { ...tenant, isolation: 'database-per-tenant' } }),
  )
  const lines = hostile.map((text) => ({ at: '2026-11-27T12:00:00.000Z', stream: 'stderr', text }))
  await page.route('**/logs?*', (route) =>
    route.request().url().includes('follow=true')
      ? route.fulfill({
          contentType: 'text/event-stream',
          body:
            lines.map((line) => `event: log\ndata: ${JSON.stringify(line)}\n\n`).join('') +
            'event: end\ndata: {"message":"<b>over</b>"}\n\n',
        })
      : route.fulfill({ json: { lines, truncated: false } }),
  )
  await show(page, `#/tenants/${tenantId}/logs`)
  await page.getByText('The log ended: <b>over</b>').waitFor()
  const shown = () => page.locator('.log-line > span').allTextContents()
  t.same(await shown(), hostile)
  await page.getByLabel('Search').fill('window.attacked')
  await page.getByText(`Download ${hostile.filter((text) => text.includes('window.attacked')).length} lines`).waitFor()
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: /^Download/ }).click()
  const text = await readFile(await (await download).path(), 'utf8')
  for (const line of scripts.filter((one) => one.includes('window.attacked'))) t.match(text, line)
  t.same(await page.evaluate('window.attacked'), undefined)
  t.same(violations, [])
  await page.context().close()
})

t.test('The figures of the usage screens are those of the API, to the digit', async (t) => {
  const opened = await openConsole(browser, controlUrl)
  const { page } = opened
  await signIn(opened, platformKey)
  const amounts = { requests: '9007199254740993', egress_bytes: '12345678901234567890', connections_peak: '7' }
  await page.route('**/v1/usage?*', (route) => {
    const isSecond = route.request().url().includes('cursor=next')
    const row = { tenant_id: tenantId, name: 'acme', incomplete: false, amounts }
    const json = { month: '2026-11', tenants: isSecond ? [row] : [row, row], next_cursor: isSecond ? null : 'next' }
    return route.fulfill({ json })
  })
  await page.goto(`${controlUrl}/#/usage`)
  await page.getByRole('cell', { name: '9,007,199,254,740,993' }).first().waitFor()
  await page.getByRole('cell', { name: '12,345,678,901,234,567,890' }).first().waitFor()
  await page.getByRole('button', { name: 'Add up all tenants' }).click()
  await page.getByText('27,021,597,764,222,979', { exact: true }).waitFor()
  await page.getByText('37,037,036,703,703,703,670', { exact: true }).waitFor()
  t.pass('three tenants on two pages were added up exactly')
  await page.context().close()
})

t.test('A page of another origin can neither frame the console nor write with its session', async (t) => {
  const opened = await openConsole(browser, controlUrl)
  await signIn(opened, platformKey)
  const other = await opened.page.context().newPage()
  // A host name of its own makes it another site, with the same browser and cookies.
  await other.route('http://attacker.test/**', (route) =>
    route.fulfill({ contentType: 'text/html', body: `<iframe src="${controlUrl}/"></iframe>` }),
  )
  const before = await controlCall(installation, 'GET', '/v1/keys')
  await other.goto('http://attacker.test/')
  const framed = other.frames().find((frame) => frame !== other.mainFrame())
  t.notMatch(await framed?.content(), 'id="app"', 'the frame is empty')
  const status = await other.evaluate<string>(`Promise.all([
    fetch('${controlUrl}/v1/keys', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"name":"x","scope":"admin"}' }),
    fetch('${controlUrl}/v1/keys', { method: 'POST', credentials: 'include', headers: { 'content-type': 'application/json' }, body: '{}' }),
  ].map((response) => response.then(({ type }) => type, ({ name }) => name))).then(String)`)
  t.match(status, /^(?:opaque|TypeError),TypeError$/, 'the page reads no response')
  t.same(await controlCall(installation, 'GET', '/v1/keys'), before)
  await opened.page.context().close()
})
