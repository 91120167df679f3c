// An operator's tasks in the web console of a real installation, in a real browser, by keyboard alone.
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { openBrowser, openConsole, press, readableText, signIn, tabTo, typeInto } from './support/open-console.ts'

const backups = await mkdtemp(join(tmpdir(), 'tenantry-console-backups-'))
// The services may run as another user than the test.
await chmod(backups, 0o777)
const installation = await startInstallation({
  environment: { TENANTRY_PRICES_FILE: 'examples/prices.json', TENANTRY_BACKUPS: backups },
})
t.teardown(async () => {
  await removeInstallation(installation)
  await rm(backups, { recursive: true, force: true })
})
const { controlUrl, platformKey } = installation
const opened = await openConsole(await openBrowser(t), controlUrl)
const { page, violations, secrets } = opened

/** Reads from the API with the platform key. */
async function api<Body>(path: string): Promise<Body> {
  const response = await fetch(`${controlUrl}${path}`, { headers: { authorization: `Bearer ${platformKey}` } })
  if (!response.ok) throw new Error(`${path} responded with ${response.status}`)
  return (await response.json()) as Body
}
interface Tenant {
  tenant_id: string
  name: string
  status: string
  suspend_reason: string | null
  backup_schedule: string | null
}
const tenant = async () => {
  const { tenants } = await api<{ tenants: Tenant[] }>('/v1/tenants?search=harbor')
  const [found] = tenants
  if (found === undefined) throw new Error('The tenant is missing.')
  return found
}
const shows = (text: string | RegExp) => page.getByText(text).first().waitFor()

t.test('Sign in, after a wrong key', async (t) => {
  await page.keyboard.type('tnp_wrong')
  await page.keyboard.press('Enter')
  await shows('The platform key is unknown.')
  await shows('INVALID_KEY')
  t.match(await page.locator('.notice-detail').textContent(), /request [0-9a-f-]{36}/, 'with the ID of the request')
  await typeInto(page, 'Platform key', platformKey)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Fleet', level: 1 }).waitFor()
  await shows('There are no tenants yet.')
  const [cookie] = await page.context().cookies()
  t.match(cookie, { name: 'tenantry_console', httpOnly: true, sameSite: 'Strict' })
})

t.test('Create a tenant, and save its keys, which the page never shows', async (t) => {
  await press(page, 'Create the first tenant')
  await typeInto(page, 'Name', 'Blue Harbor')
  await press(page, 'Create the tenant')
  await shows('INVALID_NAME')
  await typeInto(page, 'Name', 'blue-harbor')
  await press(page, 'Create the tenant')
  await page.getByRole('dialog', { name: 'blue-harbor was created' }).waitFor()
  t.ok(secrets.size >= 4, 'the response had the keys')
  const download = page.waitForEvent('download')
  await press(page, 'Save as blue-harbor-keys.json')
  t.same((await download).suggestedFilename(), 'blue-harbor-keys.json')
  const text = await readableText(page)
  for (const secret of [platformKey, ...secrets]) t.notOk(text.includes(secret), 'no secret is in the page')
  await press(page, 'Done')
  await page.getByRole('heading', { name: 'blue-harbor', level: 1 }).waitFor()
  await page.locator('.screen-note .badge', { hasText: 'ready' }).waitFor()
  t.same((await tenant()).status, 'ready')
})

t.test('Find the tenant by a part of its name', async () => {
  await press(page, 'Fleet')
  await page.getByRole('heading', { name: 'Fleet', level: 1 }).waitFor()
  await typeInto(page, 'Search', 'zebra')
  await shows('No tenant matches.')
  await typeInto(page, 'Search', 'harbor')
  await page.getByRole('link', { name: 'blue-harbor' }).waitFor()
  await press(page, 'blue-harbor')
  await page.getByRole('heading', { name: 'blue-harbor', level: 1 }).waitFor()
})

t.test('Suspend the tenant with a reason, and resume it; the screen follows live', async (t) => {
  await press(page, 'Suspend')
  await typeInto(page, 'Reason', 'The invoice is not paid. <b>Pay</b>')
  await press(page, 'Suspend the tenant')
  await page.locator('.screen-note .badge', { hasText: 'suspended' }).waitFor()
  await shows('The invoice is not paid. <b>Pay</b>')
  t.match(await tenant(), { status: 'suspended', suspend_reason: 'The invoice is not paid. <b>Pay</b>' })
  await press(page, 'Resume')
  await page.locator('.screen-note .badge', { hasText: 'ready' }).waitFor()
  t.match(await tenant(), { status: 'ready', suspend_reason: null })
})

t.test('Change a setting; the error of the API is at the field', async (t) => {
  await press(page, 'Settings')
  await typeInto(page, 'Schedule', 'often')
  await page.keyboard.press('Enter')
  await shows(/Field "backup_schedule" must be a cron expression of five fields/)
  t.same(await page.getByLabel('Schedule').getAttribute('aria-invalid'), 'true')
  await typeInto(page, 'Schedule', '30 3 * * *')
  await page.keyboard.press('Enter')
  await shows('Saved.')
  t.same((await tenant()).backup_schedule, '30 3 * * *')
})

t.test('Back the tenant up, and prove the backup', async (t) => {
  await press(page, 'Backups')
  await shows('No backup of this tenant was proven yet.')
  await press(page, 'Back up now')
  await page.locator('td .badge', { hasText: 'complete' }).waitFor()
  await press(page, 'Verify')
  await shows(/Last proven restore/)
  const { last_proven: proven } = await api<{ last_proven: unknown }>(
    `/v1/tenants/${(await tenant()).tenant_id}/backups`,
  )
  t.match(proven, { backup_id: String, at: String })
})

t.test('Read usage and the upcoming invoice, with the figures of the API', async (t) => {
  const { tenant_id: id } = await tenant()
  // The navigation has a link of the same name.
  await tabTo(page, 'Logs')
  await press(page, 'Usage')
  await shows('Resources against quotas')
  await press(page, 'Invoices')
  const upcoming = await api<{ payable: string; currency: string }>(`/v1/tenants/${id}/invoices/upcoming`)
  await page.locator('.totals-sum', { hasText: `${upcoming.payable} ${upcoming.currency}` }).waitFor()
  const href = await page.getByRole('link', { name: 'PDF' }).first().getAttribute('href')
  const pdf = await page.context().request.get(new URL(href ?? '', controlUrl).href)
  t.match(pdf.headers()['content-type'], 'application/pdf')
  t.same((await pdf.body()).subarray(0, 5).toString(), '%PDF-', 'the session may read the PDF')
})

t.test('Delete the tenant with its typed name, and undelete it', async (t) => {
  await press(page, 'Delete')
  await tabTo(page, 'Type blue-harbor to confirm')
  await page.keyboard.type('blue')
  t.ok(await page.getByRole('button', { name: 'Delete the tenant' }).isDisabled(), 'a part of the name is not enough')
  await page.keyboard.type('-harbor')
  await page.keyboard.press('Enter')
  await page.locator('.screen-note .badge', { hasText: 'deleting' }).waitFor()
  t.same((await tenant()).status, 'deleting')
  await press(page, 'Undelete')
  await page.locator('.screen-note .badge', { hasText: 'ready' }).waitFor()
})

t.test('Create a platform key and revoke it', async (t) => {
  await press(page, 'Keys')
  await press(page, 'Create a key')
  await typeInto(page, 'Name', 'night job')
  await press(page, 'Create the key')
  await page.getByRole('dialog', { name: 'The key night job was created' }).waitFor()
  await press(page, 'Continue without the secrets')
  const list = () => api<{ keys: { name: string; prefix: string; revoked_at: string | null }[] }>('/v1/keys')
  const made = (await list()).keys.find(({ name }) => name === 'night job')
  t.same(made?.revoked_at, null)
  await page
    .getByRole('row', { name: /night job/ })
    .getByRole('button', { name: 'Revoke' })
    .focus()
  await page.keyboard.press('Enter')
  await typeInto(page, /^Type tnp_/, made?.prefix ?? '')
  await page.keyboard.press('Enter')
  await page
    .getByRole('row', { name: /night job/ })
    .getByText('revoked')
    .waitFor()
  t.match(
    (await list()).keys.find(({ name }) => name === 'night job'),
    { revoked_at: String },
  )
})

t.test('Limit a shared database, plan its relief, and move homes to another one', async (t) => {
  const created = await fetch(`${controlUrl}/v1/tenants`, {
    method: 'POST',
    headers: { authorization: `Bearer ${platformKey}`, 'content-type': 'application/json', prefer: 'wait=30' },
    body: JSON.stringify({ name: 'red-harbor', plan: 'Free', region: 'local' }),
  })
  t.equal(created.status, 201, await created.text())
  const region = '/v1/regions/local'
  const [first] = (await api<{ databases: { name: string }[] }>(`${region}/databases`)).databases
  await press(page, 'Regions and hosts')
  await press(page, `Change limits of ${first?.name}`)
  await typeInto(page, 'Maximum number of homes', '0')
  await press(page, 'Change the limits')
  await page.locator('.field-error', { hasText: '"max_homes"' }).waitFor()
  await typeInto(page, 'Maximum number of homes', '1')
  await press(page, 'Change the limits')
  await shows('too many homes')

  await press(page, 'Plan a rebalance of local')
  const plan = page.getByRole('dialog', { name: 'Plan of a rebalance' })
  await plan.getByRole('cell', { name: 'tenantry_homes_2' }).first().waitFor()
  await press(page, /^Move \d+ homes?$/)
  const rebalance = page.getByRole('region', { name: 'Rebalances of local' })
  await rebalance.getByText('done').waitFor({ timeout: 60_000 })
  await press(page, 'Show the moves')
  const moves = page.getByRole('dialog', { name: 'Moves of the rebalance' })
  type Moved = { rebalances: { moves: { tenant_id: string; state: string }[] }[] }
  const moved = (await api<Moved>(`${region}/rebalances`)).rebalances[0]?.moves ?? []
  t.ok(moved.length > 0)
  for (const { tenant_id: id, state } of moved) {
    t.equal(state, 'moved')
    t.match(await moves.getByRole('row', { name: id }).textContent(), /moved.*tenantry_homes_2.*none/)
    t.match(await api(`/v1/tenants/${id}`), { status: 'ready', database_url: /tenantry_homes_2/ })
  }
  await press(page, 'Close')
  await shows('below its limits')
})

t.test('Verify the audit log, and find the own changes in it', async () => {
  await press(page, 'Audit log')
  await page.getByRole('cell', { name: 'tenant.undelete' }).waitFor()
  await press(page, 'Verify the log')
  await shows(/All \d+ entries are whole/)
})

t.test('Sign out; the session has ended, and another page with it shows the sign-in', async (t) => {
  const text = await readableText(page)
  for (const secret of [platformKey, ...secrets]) t.notOk(text.includes(secret), 'no secret is in the page')
  t.notOk(text.includes(platformKey.slice(10)), 'and no part of the key but its first characters')
  const cookies = await page.context().cookies()
  await press(page, 'Sign out')
  await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor()
  await page.context().addCookies(cookies)
  t.same((await page.context().request.get(`${controlUrl}/v1/tenants`)).status(), 401)
  await page.reload()
  await page.getByText('The session has ended.').waitFor()
  await signIn(opened, platformKey)
  t.same(violations, [], 'no error, no violation of the policy')
})
