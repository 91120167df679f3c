// Every screen of the developers' console: accessible in both themes, within its width, without text of others as HTML, small, and
// closed to pages of other origins.
import type { Page } from 'playwright-core'
import t from 'tap'
import { openConsole, signIn, type ConsolePage } from '#test/console/support/open-console.ts'
import { firstLoad, openScreen, scripts as hostile, seriousViolations } from '#test/console/support/page-checks.ts'
import { startTenants } from './support/tenant-console.ts'

const { create, browser } = await startTenants()
const tenant = await create('acme')
const other = await create('other')

await tenant.api('POST', '/rest/v1/schemas', {
  name: 'notes',
  fields: [
    { name: 'id', type: 'uuid', primary: true },
    { name: 'title', type: 'string' },
    { name: 'done', type: 'boolean' },
    { name: 'more', type: 'json' },
  ],
})
await tenant.api('POST', '/admin/reload-schemas')
await tenant.api(
  'POST',
  '/rest/v1/notes',
  hostile.map((title) => ({ title, more: { title } })),
)
await tenant.api('POST', '/storage/v1/bucket', { name: 'pictures' })

const screens = ['tables', 'tables/notes', 'tables/nothing', 'schemas', 'schemas/notes', 'schemas/new', 'sql', 'files']
const addresses = [
  ...screens,
  'files/pictures',
  'policies',
  'functions',
  'functions/none',
  'events',
  'realtime',
  'usage',
  'keys',
  'nothing',
].map((path) => `#/${path}`)

async function open(colorScheme: 'light' | 'dark' = 'light'): Promise<ConsolePage> {
  return openConsole(browser, `${tenant.url}/console`, { colorScheme }, 'Secret key')
}

const show = (page: Page, address: string) => openScreen(page, `${tenant.url}/console${address}`)

t.test('The first load has at most 60 kB, compressed with gzip', async (t) => {
  const built = new URL('../../console/built/developer/', import.meta.url)
  const { files, bytes } = await firstLoad(built, 'console/')
  t.same(files.length, 2)
  t.ok(bytes <= 60_000, `${bytes} bytes`)
})

for (const colorScheme of ['light', 'dark'] as const) {
  t.test(`axe finds nothing serious on any screen (${colorScheme}), and no screen is wider than 360 px`, async (t) => {
    const opened = await open(colorScheme)
    const { page, violations } = opened
    const requests: string[] = []
    page.on('request', (request) => requests.push(request.url()))
    const check = async (name: string) => t.same(await seriousViolations(page), [], name)
    await check('sign-in')
    await signIn(opened, tenant.secretKey)
    for (const address of addresses) {
      await page.setViewportSize({ width: 1280, height: 800 })
      await show(page, address)
      await check(address)
      await page.setViewportSize({ width: 360, height: 740 })
      t.ok(await page.evaluate<boolean>('document.documentElement.scrollWidth <= 360'), `${address} fits into 360 px`)
    }
    await page.setViewportSize({ width: 1280, height: 800 })
    await show(page, '#/tables/notes')
    await page.getByRole('button', { name: 'Insert a row' }).click()
    await page.getByLabel('title', { exact: true }).waitFor()
    await check('dialog')
    t.same(violations, [])
    t.same(
      requests.filter((url) => !url.startsWith(`${tenant.url}/`)),
      [],
      'no request to another address',
    )
    await page.context().close()
  })
}

t.test('Only the SQL screen loads the editor', async (t) => {
  const opened = await open()
  const loaded: string[] = []
  opened.page.on('request', (request) => loaded.push(request.url()))
  await signIn(opened, tenant.secretKey)
  await show(opened.page, '#/tables')
  t.notOk(loaded.some((url) => url.includes('code-mirror')))
  await show(opened.page, '#/sql')
  await opened.page.getByLabel('Statement').waitFor()
  t.ok(loaded.some((url) => url.includes('code-mirror')))
  await opened.page.context().close()
})

t.test('Texts of rows, results and files are shown as text', async (t) => {
  const opened = await open()
  const { page, violations } = opened
  await signIn(opened, tenant.secretKey)
  await show(page, '#/tables/notes')
  for (const text of hostile) await page.getByText(text, { exact: true }).first().waitFor()
  // Names of columns can be any text.
  await show(page, '#/sql')
  const [script = '', image = ''] = hostile
  await page.getByLabel('Statement').fill(`select '${script}' as "${image.replaceAll('"', '""')}"`)
  await page.keyboard.press('Control+Enter')
  await page.getByRole('cell', { name: script }).waitFor()
  await page.getByText(image).first().waitFor()
  await page.getByLabel('Statement').fill(`select "${image.replaceAll('"', '""')}"`)
  await page.keyboard.press('Control+Enter')
  await page.locator('.notice-bad').getByText(image).waitFor()
  // Paths of files are in events.
  await tenant.api('POST', `/storage/v1/object/pictures/${encodeURIComponent(image)}`, {})
  await show(page, '#/events')
  await page.getByLabel('After position').fill('0')
  await page.getByRole('button', { name: 'Follow' }).click()
  const subject = page.getByText(`pictures/${image}`)
  await subject.click()
  await page
    .getByLabel(/^Event \d+ as JSON$/)
    .getByText(JSON.stringify(image))
    .waitFor()
  await show(page, '#/files/pictures')
  await page.getByText(image).first().waitFor()
  t.same(await page.evaluate('window.attacked'), undefined)
  t.same(violations, [])
  await page.context().close()
})

t.test('Another tenant of the same host receives no session, and its pages cannot use one', async (t) => {
  const opened = await open()
  const { page } = opened
  await signIn(opened, tenant.secretKey)
  const sent = page.waitForRequest((request) => request.url().startsWith(`${other.url}/`))
  await page.evaluate(`fetch('${other.url}/rest/v1/', { credentials: 'include' }).then(({ status }) => status)`)
  t.same(await (await sent).headerValue('cookie'), null, 'the cookie is limited to the path of its tenant')
  // A browser gives a file that another tenant stores an origin of its own.
  await other.api('POST', '/storage/v1/bucket', { name: 'site', policy: 'public' })
  const attack = `<body><script>
    fetch('${tenant.url}/console/v1/session', { credentials: 'include' }).then(async (r) => { document.title = await r.text() })
  </script>hello`
  await fetch(`${other.url}/storage/v1/object/site/page.html`, {
    method: 'POST',
    headers: { authorization: `Bearer ${other.secretKey}`, 'content-type': 'text/html' },
    body: attack,
  })
  const response = await fetch(`${other.url}/storage/v1/object/site/page.html`)
  t.match(response.headers.get('content-security-policy'), 'sandbox')
  await page.context().close()
})

t.test('A page of another origin can neither frame the console nor write with its session', async (t) => {
  const opened = await open()
  await signIn(opened, tenant.secretKey)
  const attacker = await opened.page.context().newPage()
  await attacker.route('http://attacker.test/**', (route) =>
    route.fulfill({ contentType: 'text/html', body: `<iframe src="${tenant.url}/console"></iframe>` }),
  )
  await attacker.goto('http://attacker.test/')
  const framed = attacker.frames().find((frame) => frame !== attacker.mainFrame())
  t.notMatch(await framed?.content(), 'id="app"', 'the frame is empty')
  const before = await tenant.api('GET', '/rest/v1/notes')
  const result = await attacker.evaluate<string>(`Promise.all([
    fetch('${tenant.url}/rest/v1/notes?title=not.is.null', { method: 'DELETE', credentials: 'include' }),
    fetch('${tenant.url}/rest/v1/notes', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}' }),
    fetch('${tenant.url}/console/v1/session', { credentials: 'include' }),
  ].map((response) => response.then(({ type }) => type, ({ name }) => name))).then(String)`)
  t.match(result, /^TypeError,(?:opaque|TypeError),TypeError$/, 'the page reads no response')
  t.same(await tenant.api('GET', '/rest/v1/notes'), before)
  await opened.page.context().close()
})
