// Moves of a tenant's home in the console, by keyboard, with a real Postgres, runtime, gateway and control plane.
import t from 'tap'
import { createOwner, ended, first, second, sql, startMovePlatform } from '#test/moves/support/platform.ts'
import { openBrowser, openConsole, press, signIn, typeInto } from './support/open-console.ts'
import { openScreen, seriousViolations } from './support/page-checks.ts'

const platform = await startMovePlatform(t, {
  control: { TENANTRY_MOVE_REVERSE_SECONDS: '3600', TENANTRY_MOVE_MEGABYTES_PER_SECOND: '1' },
})
await platform.startControlPlane()
const ada = await createOwner(platform, 'ada')
const ben = await createOwner(platform, 'ben')
const { controlUrl, platformKey } = platform
const browser = await openBrowser(t)
const opened = await openConsole(browser, controlUrl)
const { page, violations } = opened
await signIn(opened, platformKey)
const card = page.getByRole('region', { name: 'Shared database' })
const addressOf = ({ id }: { id: string }) => `${controlUrl}/#/tenants/${id}/overview`

/** Returns the last move of a tenant. */
async function lastMove({ id }: { id: string }): Promise<{ id: string }> {
  const { body } = await platform.call('GET', `/v1/operations?tenant_id=${id}&kind=move&order=newest&limit=1`)
  const [operation] = body['operations'] as { id: string }[]
  if (operation === undefined) throw new Error('The tenant has no move.')
  return operation
}

const tenantBody = async ({ id }: { id: string }) => (await platform.call('GET', `/v1/tenants/${id}`)).body

t.test('A home moves to a selected database, and returns', async (t) => {
  await openScreen(page, addressOf(ben))
  await card.getByText(first).waitFor()
  t.equal(await card.getByRole('button', { name: 'Revert the move' }).count(), 0, 'there is nothing to revert')
  await press(page, 'Move the home')
  const dialog = page.getByRole('dialog', { name: 'Move the home of ben' })
  await dialog.getByLabel('Database').waitFor()
  t.same(await dialog.getByRole('option').allTextContents(), [`${second}: a new database`])
  t.same(await seriousViolations(page), [])
  await press(page, 'Move the home')
  await dialog.waitFor({ state: 'detached' })
  await card.getByText(`succeeded ${first} → ${second}`).waitFor({ timeout: 60_000 })
  await card.getByText(/^to tenantry_homes_1; the time for it ends in \d+ minutes$/).waitFor()
  t.match(await tenantBody(ben), { status: 'ready', database_url: new RegExp(`/${second}$`) })

  await press(page, 'Move to other services')
  const services = page.getByRole('dialog', { name: 'Move ben to other services?' })
  t.same(await services.getByRole('option').allTextContents(), [
    'a Postgres and a runtime of its own',
    'a cluster of its own: three members of Postgres and two runtimes',
  ])
  t.same(await seriousViolations(page), [])
  await press(page, 'Start the move')
  await page.getByText('Invalid isolation "database-per-tenant" in the region "local"').waitFor()
  await press(page, 'Cancel')

  await press(page, 'Move the home')
  await dialog.getByText('The last move cannot be reverted any more.').waitFor()
  t.same(await dialog.getByRole('option').allTextContents(), [
    `${first}: 1 of 1,000 homes`,
    'tenantry_homes_3: a new database',
  ])
  await press(page, 'Cancel')
  await press(page, 'Revert the move')
  await page.getByRole('dialog', { name: `Return the home to ${first}?` }).waitFor()
  t.same(await seriousViolations(page), [])
  await press(page, `Return the home to ${first}`)
  await card.getByText(`succeeded ${second} → ${first}`).waitFor({ timeout: 60_000 })
  t.match(await card.innerText(), /Last revert/)
  t.equal(await card.getByRole('button', { name: 'Revert the move' }).count(), 0, 'a revert is not reverted')
  t.match(await tenantBody(ben), { status: 'ready', database_url: new RegExp(`/${first}$`) })
})

t.test('A move in progress is followed, and canceled before its switch', async (t) => {
  // More than a minute of the slowest copy.
  await sql(
    ada.url,
    `create table large (id int primary key, body text);
     insert into large select i, repeat(md5(i::text), 50) from generate_series(1, 40000) i`,
  )
  await openScreen(page, addressOf(ada))
  await press(page, 'Move the home')
  await page.getByRole('dialog').getByLabel('Database').waitFor()
  await press(page, 'Move the home')
  const progress = card.getByRole('region', { name: 'Move in progress' })
  await progress.getByText('copy: the home is copied from one snapshot').waitFor({ timeout: 60_000 })
  await progress.getByText(/^[1-9][\d,]* rows, /).waitFor()
  t.equal(await card.getByRole('button', { name: 'Move the home' }).count(), 0, 'no other move begins meanwhile')
  t.same(await seriousViolations(page), [])
  await press(page, 'Cancel the move')
  await page.getByRole('dialog', { name: 'Cancel the move' }).getByText('The tenant continues in').waitFor()
  await press(page, `Leave the home in ${first}`)
  await card.getByText('An operator has canceled the move.').waitFor({ timeout: 60_000 })
  await card.getByRole('button', { name: 'Move the home' }).waitFor()
  const operation = await ended(platform, (await lastMove(ada)).id)
  t.match(operation, { state: 'failed', error: 'An operator has canceled the move.' })
  t.match(await tenantBody(ada), { status: 'ready', database_url: new RegExp(`/${first}$`) })
})

t.test('The reason is shown when a move cannot be reverted any more', async () => {
  await openScreen(page, addressOf(ben))
  await press(page, 'Move the home')
  await page.getByRole('dialog').getByLabel('Database').waitFor()
  await press(page, 'Move the home')
  await card.getByText(/the time for it ends/).waitFor({ timeout: 60_000 })
  await sql(ben.url.replace(first, second), 'create table drafts (id int primary key)')
  await card
    .getByText('not possible: The structure of the home has changed since the move.')
    .waitFor({ timeout: 60_000 })
  await card.getByRole('button', { name: 'Revert the move' }).waitFor({ state: 'detached' })
})

t.test('A session of a tenant names the database, and one that may only read has no action', async (t) => {
  const session = async (key: object) => {
    const { body } = await platform.call('POST', '/v1/keys', { name: 'operator', ...key })
    const other = await openConsole(browser, controlUrl)
    t.teardown(() => other.page.context().close())
    await signIn(other, String(body['key']))
    return { page: other.page, card: other.page.getByRole('region', { name: 'Shared database' }) }
  }
  const reader = await session({ scope: 'read' })
  await openScreen(reader.page, addressOf(ada))
  await reader.card.getByText('An operator has canceled the move.').waitFor()
  t.equal(await reader.card.getByRole('button').count(), 0)

  const limited = await session({ scope: 'admin', tenant_id: ada.id })
  await openScreen(limited.page, addressOf(ada))
  await press(limited.page, 'Move the home')
  await typeInto(limited.page, 'Database', 'elsewhere')
  await press(limited.page, 'Move the home')
  await limited.page.getByText('Invalid database "elsewhere".').waitFor()
  t.same(violations, [], 'no error, no violation of the policy')
})
