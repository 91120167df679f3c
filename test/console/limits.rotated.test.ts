// What the console shows to sessions of keys that may not do everything: no action and no request that the API would reject.
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { startApi } from '#test/support/control-plane/api.ts'
import { openBrowser, openConsole, signIn } from './support/open-console.ts'
import { openScreen } from './support/page-checks.ts'
import { screensOf } from './support/screens.ts'

const api = await startApi(t, { cloud: true, control: false })
const url = await api.app.listen({ host: '127.0.0.1', port: 0 })
const browser = await openBrowser(t)

async function post(path: string, body: object): Promise<Record<string, unknown>> {
  const response = await api.call('POST', path, { body })
  if (response.status !== 201) throw new Error(response.text)
  return response.body as Record<string, unknown>
}
const near = String((await post('/v1/tenants', { name: 'near', plan: 'Free', region: 'local' }))['tenant_id'])
await post('/v1/tenants', { name: 'far', plan: 'Pro', region: 'cloud' })

/** Signs in with a new key. @returns the page, and the responses with an error that it has received */
async function open(t: Test, key: object): Promise<{ page: Page; rejected: string[]; links: () => Promise<string[]> }> {
  const opened = await openConsole(browser, url)
  t.teardown(() => opened.page.context().close())
  const rejected: string[] = []
  await signIn(opened, String((await post('/v1/keys', { name: 'operator', ...key }))['key']))
  opened.page.on('response', (response) => {
    if (response.status() === 401 || response.status() === 403)
      rejected.push(`${response.status()} ${new URL(response.url()).pathname}`)
  })
  const links = () => opened.page.getByRole('navigation', { name: 'Screens' }).getByRole('link').allTextContents()
  return { page: opened.page, rejected, links }
}

/** Opens every screen, and returns the names of all buttons on each. */
async function visit(page: Page): Promise<Record<string, string[]>> {
  const buttons: Record<string, string[]> = {}
  for (const [name, address] of Object.entries(screensOf(near))) {
    await openScreen(page, `${url}/${address}`)
    buttons[name] = await page.locator('#screen').getByRole('button').allTextContents()
  }
  return buttons
}

const writes = /create|suspend|delete|rotate|back up|restore|revoke|remove|start|add a|save|repair|move the|revert/i

t.test('A session that may only read has no action, and the page states why', async (t) => {
  const { page, rejected, links } = await open(t, { scope: 'read' })
  await page.getByText('This session has the scope read: it can read everything, but change nothing.').waitFor()
  t.same(await links(), ['Fleet', 'Usage', 'Plans and prices', 'Regions and hosts', 'Rollouts', 'Webhooks'])
  for (const [screen, buttons] of Object.entries(await visit(page)))
    t.same(
      buttons.filter((name) => writes.test(name)),
      [],
      `${screen} has no action`,
    )
  await page.goto(`${url}/#/keys`)
  await page.getByText('It needs a key with the scope admin. This session has the scope read.').waitFor()
  t.same(rejected, [], 'no request was rejected')
})

t.test('A session of a region has its tenants and actions, without what concerns the installation', async (t) => {
  const { page, rejected, links } = await open(t, { scope: 'admin', region: 'local' })
  await page.getByText('It is limited to the region local.').waitFor()
  await page.getByText('scope admin, limited to the region local').waitFor()
  await page.getByRole('link', { name: 'near' }).waitFor()
  t.same(await page.getByRole('link', { name: 'far' }).count(), 0)
  t.same(await links(), ['Fleet', 'Usage', 'Plans and prices', 'Regions and hosts', 'Rollouts', 'Keys'])
  const buttons = await visit(page)
  t.ok(buttons['fleet']?.includes('Create a tenant'))
  t.ok(buttons['tenant: overview']?.includes('Suspend'))
  await page.goto(`${url}/#/audit`)
  await page.getByText('It is about the whole installation. This session is limited to the region local.').waitFor()
  t.same(rejected, [], 'no request was rejected')
})

t.test('A session of a tenant cannot create another one', async (t) => {
  const { page, rejected, links } = await open(t, { scope: 'admin', tenant_id: near })
  await page.getByText(`It is limited to the tenant ${near}.`).waitFor()
  t.same(await links(), ['Fleet', 'Usage', 'Plans and prices', 'Keys'])
  const buttons = await visit(page)
  t.notOk(buttons['fleet']?.includes('Create a tenant'))
  t.ok(buttons['tenant: overview']?.includes('Suspend'))
  await page.goto(`${url}/#/keys`)
  await page.getByRole('button', { name: 'Create a key' }).click()
  await page.getByLabel('Name').fill('for the same tenant')
  await page.getByRole('button', { name: 'Create the key' }).click()
  await page.getByRole('dialog', { name: /for the same tenant was created/ }).waitFor()
  const { keys } = (await api.call('GET', '/v1/keys')).body as { keys: { name: string; tenant_id: string }[] }
  t.match(
    keys.find(({ name }) => name === 'for the same tenant'),
    { tenant_id: near },
  )
  t.same(rejected, [], 'no request was rejected')
})
