// A developer's tasks in the console of a tenant of a real installation, in a real browser, by keyboard alone.
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { command } from '#test/functions/support/wasm.ts'
import { until } from '#test/support/until.ts'
import { openConsole, press, readableText, tabTo, typeInto } from '#test/console/support/open-console.ts'
import { startTenants } from './support/tenant-console.ts'

const { create, browser, installation } = await startTenants()
const tenant = await create('acme')
const { page, violations, secrets } = await openConsole(browser, `${tenant.url}/console`, {}, 'Secret key')

const shows = (text: string | RegExp) => page.getByText(text).first().waitFor()
const heading = (name: string) => page.getByRole('heading', { name, level: 1 }).waitFor()
interface Note {
  id: string
  title: string
  rank: number | null
}
const notes = () => tenant.api<Note[]>('GET', '/rest/v1/notes?order=title')

t.test('Sign in, after a wrong key', async (t) => {
  await page.locator('input:focus').waitFor()
  await page.keyboard.type('tn_secret_wrong')
  await page.keyboard.press('Enter')
  await shows('This is not a secret key of the tenant.')
  t.match(await page.locator('.notice-detail').textContent(), /INVALID_KEY · request [\w-]{8,}/)
  await typeInto(page, 'Secret key', tenant.secretKey)
  await page.keyboard.press('Enter')
  await heading('Tables')
  await shows('There are no tables yet.')
  const [cookie] = await page.context().cookies()
  t.match(cookie, { path: '/t/acme/', httpOnly: true, sameSite: 'Strict' })
})

t.test('Add a schema, and reload', async (t) => {
  await press(page, 'Describe the first collection')
  await heading('Add a schema')
  await typeInto(page, 'Schema as JSON', '{"name":"notes"}')
  await press(page, 'Add the schema')
  await shows('fields must be an array of 1 to 200 field definitions.')
  const fields =
    '[{"name":"id","type":"uuid","primary":true},{"name":"title","type":"string","required":true},' +
    '{"name":"rank","type":"number"},{"name":"more","type":"json"}]'
  await typeInto(page, 'Schema as JSON', `{"name":"notes","fields":${fields}}`)
  await press(page, 'Add the schema')
  await heading('notes')
  await press(page, 'Reload the schemas')
  await shows('collection "notes" was created')
  t.same(await notes(), [])
})

t.test("Insert rows; the API's own error is at the field", async (t) => {
  await press(page, 'Tables')
  await press(page, 'notes')
  await shows('There are no rows yet.')
  await press(page, 'Insert a row')
  await typeInto(page, 'rank', 'high')
  await press(page, 'Insert the row')
  await shows('Field "rank" must be a number.')
  t.same(await page.getByLabel('rank', { exact: true }).getAttribute('aria-invalid'), 'true')
  await typeInto(page, 'rank', '0.1')
  await press(page, 'Insert the row')
  await shows('Field "title" is required.')
  await typeInto(page, 'title', '<b>first</b>')
  await press(page, 'Insert the row')
  await page.getByRole('cell', { name: '<b>first</b>' }).waitFor()
  for (const title of ['second', 'third']) await tenant.api('POST', '/rest/v1/notes', { title, rank: 2 })
  t.match(await notes(), [{ title: '<b>first</b>', rank: 0.1, more: null }, {}, {}])
})

t.test('Edit a row: only the changed column is sent', async (t) => {
  await page.getByRole('row', { name: /first/ }).getByRole('button', { name: 'Edit' }).focus()
  await page.keyboard.press('Enter')
  await typeInto(page, 'more', '{"deep": [1')
  await press(page, 'Save the row')
  await shows(/Field "more" is not valid JSON/)
  await typeInto(page, 'more', '{"deep": [12345678901234567890]}')
  const request = page.waitForRequest((one) => one.method() === 'PATCH')
  await press(page, 'Save the row')
  t.same((await request).postData(), '{"more":{"deep": [12345678901234567890]}}')
  await page.getByRole('cell', { name: '{"deep": [12345678901234567890]}' }).waitFor()
})

t.test('Filter and sort', async (t) => {
  const titles = () => page.locator('tbody td:nth-child(2)').allTextContents()
  await press(page, /^Sort by title/)
  await page.getByRole('cell', { name: 'third' }).waitFor()
  await press(page, 'Sort by title, now ascending')
  await page.getByRole('button', { name: 'Sort by title, now descending' }).waitFor()
  await page.locator('tbody tr:first-child', { hasText: 'third' }).waitFor()
  t.same(await titles(), ['third', 'second', '<b>first</b>'])
  await tabTo(page, 'Column')
  await page.keyboard.type('title')
  await tabTo(page, 'Condition')
  await page.keyboard.type('matches')
  await typeInto(page, 'Value', '*con*')
  await page.keyboard.press('Enter')
  await shows('title ilike *con*')
  await page.locator('tbody tr', { hasText: 'third' }).waitFor({ state: 'detached' })
  await page.getByRole('cell', { name: 'second' }).waitFor()
  t.same(await titles(), ['second'])
})

t.test('Delete a row', async (t) => {
  await page
    .getByRole('row', { name: /second/ })
    .getByRole('button', { name: 'Delete' })
    .focus()
  await page.keyboard.press('Enter')
  await press(page, 'Delete the row')
  await shows('No row matches the filters.')
  t.same(
    (await notes()).map(({ title }) => title),
    ['<b>first</b>', 'third'],
  )
  await press(page, /^Remove the filter/)
  await page.getByRole('cell', { name: 'third' }).waitFor()
})

t.test('Run a query, which cannot change anything by default', async (t) => {
  await press(page, 'SQL')
  await heading('SQL')
  await typeInto(page, 'Statement', "select title, '<i>' || 9007199254740993 as large from notes order by title")
  await page.keyboard.press('Control+Enter')
  await page.getByRole('cell', { name: '<i>9007199254740993' }).first().waitFor()
  await typeInto(page, 'Statement', 'delete from notes')
  await press(page, 'Run the statement')
  await shows('cannot execute DELETE in a read-only transaction')
  t.same((await notes()).length, 2)
  await typeInto(page, 'Statement', 'select 1\nfrom nowhere')
  await press(page, 'Run the statement')
  await shows('The error is in line 2:')
  await tabTo(page, 'Allow changes')
  await page.keyboard.press('Space')
  await typeInto(page, 'Statement', "update notes set rank = 7 where title = 'third'")
  await page.keyboard.press('Control+Enter')
  await shows('UPDATE 1')
  t.same((await notes())[1]?.rank, 7)
})

/** Accepts a completion. Like a user, it is slower than the 75 ms in which the editor does not accept a new list's entries. */
async function complete(name: string): Promise<void> {
  await page.getByRole('option', { name }).waitFor()
  await page.waitForTimeout(200)
  await page.keyboard.press('Enter')
}

t.test('Complete a name of a table, run a selection, and leave the editor', async (t) => {
  await typeInto(page, 'Statement', "create table kept_lamps as select 'one' as lamp_name")
  await page.keyboard.press('Control+Enter')
  await shows('SELECT 1')
  await typeInto(page, 'Statement', 'select lamp_name\nfrom kept')
  await complete('kept_lamps')
  await page.keyboard.type(' limit 1')
  await page.keyboard.press('Control+Enter')
  await page.getByRole('cell', { name: 'one' }).waitFor()
  const editor = page.getByLabel('Statement')
  t.same(
    await editor.evaluate("document.querySelector('.editor').shadowRoot.querySelector('.cm-content').innerText"),
    ['select lamp_name', 'from kept_lamps limit 1'].join('\n'),
  )
  // Enter begins a line if the word is complete.
  await typeInto(page, 'Statement', 'select 1 from kept_lamps')
  await complete('kept_lamps')
  await page.keyboard.type('limit 0')
  await page.keyboard.press('Control+Enter')
  await shows('The statement returned no rows.')
  // What is typed replaces a selection without an inline style, which the policy of the page would reject.
  await page.keyboard.press('Control+A')
  await page.keyboard.type('select 40 + 2 as two;\nselect 3 as three')
  await page.keyboard.press('Shift+Home')
  await page.keyboard.press('Control+Enter')
  await page.getByRole('cell', { name: '3', exact: true }).waitFor()
  await page.keyboard.press('End')
  await page.keyboard.press('Tab')
  t.ok(await editor.evaluate("document.activeElement.className === 'editor'"), 'Tab indents')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Tab')
  await page.locator('button:focus', { hasText: 'Run the statement' }).waitFor()
  await typeInto(page, 'Statement', 'drop table kept_lamps')
  await page.keyboard.press('Control+Enter')
  await shows('DROP TABLE')
})

t.test('Create a bucket, upload a file, and sign a URL', async (t) => {
  await press(page, 'Files')
  await heading('Files')
  await press(page, 'Create a bucket')
  await typeInto(page, 'Name', 'A')
  await press(page, 'Create the bucket')
  await page.locator('.field-error, .notice-bad').first().waitFor()
  await typeInto(page, 'Name', 'pictures')
  await press(page, 'Create the bucket')
  await heading('pictures')
  await shows('The folder is empty.')
  const choosing = page.waitForEvent('filechooser')
  await tabTo(page, 'Drop files here, or choose them')
  await page.keyboard.press('Enter')
  await (
    await choosing
  ).setFiles([
    { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('<script>window.attacked = 1</script> lamp') },
    { name: 'dot.png', mimeType: 'image/png', buffer: await readFile('examples/lighthouse.png') },
  ])
  await page.getByRole('cell', { name: 'dot.png' }).waitFor()
  await page
    .getByRole('row', { name: /notes.txt/ })
    .getByRole('button', { name: 'Open' })
    .focus()
  await page.keyboard.press('Enter')
  await shows('<script>window.attacked = 1</script> lamp')
  await press(page, 'Sign a URL')
  const url = (await page.locator('.snippet code').textContent()) ?? ''
  t.match(await (await fetch(url)).text(), 'lamp', 'anyone can read with the URL')
  await page.keyboard.press('Escape')
  await page
    .getByRole('row', { name: /dot.png/ })
    .getByRole('button', { name: 'Open' })
    .focus()
  await page.keyboard.press('Enter')
  await page.getByAltText('Preview of dot.png').waitFor()
  const width = () => page.evaluate<number>("document.querySelector('img.preview').naturalWidth")
  await until(async () => (await width()) > 0, 'the preview')
  await page.keyboard.press('Escape')
  await page
    .getByRole('row', { name: /notes.txt/ })
    .getByRole('button', { name: 'Delete' })
    .focus()
  await page.keyboard.press('Enter')
  await press(page, 'Delete the file')
  await page.getByRole('cell', { name: 'notes.txt' }).waitFor({ state: 'detached' })
  t.match(await tenant.api('GET', '/storage/v1/bucket/pictures'), { file_count: 1 })
})

t.test('Deploy a function, and invoke it', async (t) => {
  await press(page, 'Functions')
  await heading('Functions')
  await press(page, 'Deploy a function')
  await typeInto(page, 'Name', 'quiet')
  const choosing = page.waitForEvent('filechooser')
  await tabTo(page, 'Module')
  await page.keyboard.press('Enter')
  const buffer = Buffer.from(command())
  await (await choosing).setFiles([{ name: 'quiet.wasm', mimeType: 'application/wasm', buffer }])
  await press(page, 'Deploy the function')
  await heading('quiet')
  await press(page, 'Invoke the function')
  await shows(/^Status 200 · invocation/)
  await page.getByRole('cell', { name: 'success' }).waitFor()
  t.match(await tenant.api('GET', '/functions/v1/quiet'), { invocation_count: 1 })
})

t.test('Watch a broadcast and a change on a channel', async () => {
  await press(page, 'Realtime')
  await heading('Realtime')
  await typeInto(page, 'Topic', 'room')
  await page.keyboard.press('Enter')
  await page.getByText('joined', { exact: true }).waitFor()
  await tenant.broadcast('room', 'move', { x: '<b>1</b>' })
  await shows('broadcast move')
  await shows('{"x":"<b>1</b>"}')
  await press(page, 'Leave the channel')
  await shows('not joined')
})

t.test('Follow events with a filter, open one, pause, and continue without a gap', async (t) => {
  await press(page, 'Events')
  await heading('Events')
  const events = page.getByRole('list', { name: 'Events' }).getByRole('listitem')
  await page.getByText('following', { exact: true }).waitFor()
  await typeInto(page, 'Types', 'storage.object.created, functions.updated')
  await typeInto(page, 'Buckets', 'Not A Name')
  await page.keyboard.press('Enter')
  await shows('Parameter "bucket" must be names')
  await typeInto(page, 'Buckets', 'pictures')
  await page.keyboard.press('Enter')
  await page.getByText('following', { exact: true }).waitFor()
  const put = (name: string) => tenant.api('POST', `/storage/v1/object/pictures/${name}`, { lamp: name })
  await put('first.json')
  await events.filter({ hasText: 'pictures/first.json' }).waitFor()
  await press(page, /storage\.object\.created.*first\.json/)
  await shows(/^\{\n {2}"path": "first\.json",$/m)
  await press(page, 'Pause')
  await page.getByText('paused', { exact: true }).waitFor()
  await put('second.json')
  await tenant.api('DELETE', '/storage/v1/object/pictures/first.json')
  await put('third.json')
  t.same(await events.count(), 1)
  await press(page, 'Continue')
  await events.filter({ hasText: 'pictures/third.json' }).waitFor()
  t.same(await events.locator('.event-subject').allTextContents(), [
    'pictures/third.json',
    'pictures/second.json',
    'pictures/first.json',
  ])
  // The runtime is replaced. The stream continues at its position.
  for (const name of await installation.runtimes()) process.kill(await installation.pid(name), 'SIGKILL')
  await page.getByText('connecting again …').waitFor()
  await until(
    () =>
      put('fourth.json').then(
        () => true,
        () => false,
      ),
    'the runtime serves again',
  )
  await events.filter({ hasText: 'pictures/fourth.json' }).first().waitFor()
  t.match(await events.locator('.event-subject').allTextContents(), /fourth.*third.*second.*first/s)
  await typeInto(page, 'Types', 'storage.object.deleted')
  await typeInto(page, 'After position', '0')
  await page.keyboard.press('Enter')
  await events.filter({ hasText: 'first.json' }).waitFor()
  t.same(await events.locator('.event-subject').allTextContents(), ['pictures/first.json', 'pictures/notes.txt'])
})

t.test('See which keys exist and which are in use, without their values', async (t) => {
  await press(page, 'Keys')
  await heading('Keys')
  const row = page.getByRole('row', { name: /^secret_key/ })
  await row.getByText(`${tenant.secretKey.slice(0, 14)}…`).waitFor()
  t.match(await row.textContent(), /valid.*(just now|ago)/)
  await page
    .getByRole('row', { name: /^publishable_key/ })
    .getByText('not seen')
    .waitFor()
  await page.getByRole('row', { name: /^jwt_secret/ }).waitFor()
  await shows('tenantry keys rotate-tenant acme --kind secret_key --overlap 86400')
  await shows(tenant.url)
})

t.test('Read the policies and the usage', async () => {
  await press(page, 'Policies')
  await page.getByRole('row', { name: /notes/ }).first().waitFor()
  await press(page, 'Usage')
  await shows('Resources against quotas')
})

t.test('Sign out; no part of the key was in the page, and the session has ended', async (t) => {
  const text = await readableText(page)
  for (const secret of [tenant.secretKey, ...secrets]) t.notOk(text.includes(secret), 'no secret is in the page')
  t.notOk(text.includes(tenant.secretKey.slice(12, 30)), 'and no part of the key')
  const cookies = await page.context().cookies()
  await page.reload()
  await page.getByText('service role').waitFor()
  await press(page, 'Sign out')
  await heading('Sign in to your tenant')
  t.same(await page.context().cookies(), [])
  await page.context().addCookies(cookies)
  await page.reload()
  await heading('Sign in to your tenant')
  t.same(violations, [], 'no error, no violation of the policy')
})
