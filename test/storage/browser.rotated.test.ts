// A real browser opens files of untrusted users in every way that a page can open them: none of their scripts runs.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { chromium, errors, type BrowserContext, type Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { ensureChromium } from '#scripts/chromium.ts'
import { until } from '#test/support/until.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { scriptFiles, type ScriptFile } from './support/script-files.ts'

const objects = '/storage/v1/object'
const pagesAtOnce = 3

/**
 * Starts another site. It records which scripts report, has a page that embeds any URL, and serves files like a
 * careless server.
 */
async function openSite(t: Test, files: () => readonly ScriptFile[]) {
  const received = new Set<string>()
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://site')
    const [, location, name = ''] = url.pathname.split('/')
    const file = files().find((one) => one.name === name)
    if (location === 'reports') received.add(name)
    if (location === 'page') {
      const at = (url.searchParams.get('at') ?? '').replaceAll('&', '&amp;').replaceAll('"', '&quot;')
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end(
          `<!doctype html><iframe src="${at}"></iframe><object data="${at}"></object><embed src="${at}">` +
            `<img src="${at}"><video src="${at}"></video>` +
            `<script src="${at}"></script><script type="module" src="${at}"></script><link rel="stylesheet" href="${at}">`,
        )
    } else if (file !== undefined && (location === 'typed' || location === 'sniffed')) {
      response.writeHead(200, location === 'typed' ? { 'content-type': file.contentType } : {}).end(file.bytes)
    } else response.writeHead(204).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the site has no port')
  const url = `http://127.0.0.1:${address.port}`
  return { url, received, embedding: (at: string) => `${url}/page?at=${encodeURIComponent(at)}` }
}

/** The scripts that the browser itself observed. */
interface Seen {
  dialogs: string[]
  titles: string[]
  shown: string[]
}

/** Opens each URL, and clicks on the page that it shows. */
async function visit(context: BrowserContext, urls: readonly string[]): Promise<Seen> {
  const seen: Seen = { dialogs: [], titles: [], shown: [] }
  const left = [...urls]
  await Promise.all(
    Array.from({ length: pagesAtOnce }, async () => {
      const openPage = async () => {
        const page = await context.newPage()
        page.setDefaultTimeout(15_000)
        page.on('dialog', (dialog) => {
          seen.dialogs.push(dialog.message())
          void dialog.dismiss().catch(() => undefined)
        })
        return page
      }
      let page = await openPage()
      const visitOne = async (url: string) => {
        if (await opens(page, url)) seen.shown.push(url)
        await page.mouse.click(60, 60)
        seen.titles.push(await page.title())
      }
      for (let url = left.shift(); url !== undefined; url = left.shift()) {
        const here = url
        // A dialog that appears while its page is left can block the page for good. A new one then opens the URL again.
        await visitOne(here).catch(async (error: unknown) => {
          if (!(error instanceof errors.TimeoutError)) throw error
          await page.close()
          page = await openPage()
          await visitOne(here)
        })
      }
      await page.close()
    }),
  )
  return seen
}

/** Returns false when the browser saves the file instead. */
async function opens(page: Page, url: string): Promise<boolean> {
  try {
    await page.goto(url)
    return true
  } catch (error) {
    if (error instanceof Error && /Download is starting|ERR_ABORTED/.test(error.message)) return false
    throw error
  }
}

/** Returns what scripts stored at the origin of the URL, which must be shown without a sandbox. */
async function storedAt(context: BrowserContext, url: string): Promise<number> {
  const page = await context.newPage()
  await page.goto(url)
  const left = await page.evaluate('localStorage.length + document.cookie.length')
  await page.close()
  return Number(left)
}

async function upload(tenant: TestTenant, bucket: string, { name, contentType, bytes }: ScriptFile): Promise<void> {
  const response = await tenant.request('POST', `${objects}/${bucket}/${name}.html`, {
    as: 'u1',
    body: bytes,
    headers: { 'content-type': contentType },
  })
  if (response.status !== 200) throw new Error(response.text)
}

t.test('A browser runs no stored script', { timeout: 170_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  let files: ScriptFile[] = []
  const site = await openSite(t, () => files)
  files = scriptFiles(`${site.url}/reports/`)
  const executablePath = await ensureChromium()
  const browser = await chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })
  t.teardown(() => browser.close())
  const context = await browser.newContext({ acceptDownloads: false })

  for (const [name, policy] of [
    ['open', 'public'],
    ['shut', 'private'],
  ] as const) {
    await tenant.request('POST', '/storage/v1/bucket', { as: 'u1', body: { name, policy } })
    await Promise.all(files.map((file) => upload(tenant, name, file)))
  }
  const signed = (
    await tenant.request('POST', `${objects}/sign/shut`, {
      as: 'u1',
      body: { expiresIn: 3600, paths: files.map(({ name }) => `${name}.html`) },
    })
  ).list()

  await t.test('Stored files are sent with headers that prevent scripts', { timeout: 60_000 }, async (t) => {
    const inert = /^(?:image\/(?:png|jpeg|gif|x-icon)|text\/plain|application\/json|video\/mp4|font\/woff2)$/
    for (const { name, contentType } of files) {
      for (const path of [
        `public/open/${name}.html`,
        `open/${name}.html`,
        `open/${name}.html?download`,
        String(signed.find(({ path }) => path === `${name}.html`)?.['signedURL']).slice('/object/'.length),
      ]) {
        const { status, headers } = await tenant.request('GET', `${objects}/${path}`)
        t.match(
          [status, headers],
          [
            200,
            {
              'content-type': contentType,
              'x-content-type-options': 'nosniff',
              'content-security-policy': "sandbox; default-src 'none'",
            },
          ],
          path,
        )
        const wanted = inert.test(contentType) && !path.includes('download') ? undefined : /^attachment; filename="/
        if (wanted === undefined) t.equal(headers['content-disposition'], undefined, path)
        else t.match(headers['content-disposition'], wanted, path)
      }
    }
  })

  await t.test(
    'No script runs when files are opened, embedded, saved under a name, or read by signed URLs',
    { timeout: 120_000 },
    async (t) => {
      const urls = files.flatMap(({ name }, nth) => {
        const [open, byToken] = [
          `${tenant.url}${objects}/public/open/${name}.html`,
          `${tenant.url}/storage/v1${String(signed[nth]?.['signedURL'])}`,
        ]
        return [open, `${open}?download=x.html`, byToken, site.embedding(open)]
      })
      const seen = await visit(context, urls)
      t.same(seen.dialogs, [])
      t.same(
        seen.titles.filter((title) => title.startsWith('ran')),
        [],
      )
      t.ok(
        seen.shown.length >= files.length + 10 && seen.shown.length < urls.length,
        `${seen.shown.length} of ${urls.length} were shown, the others saved`,
      )
      // This request arrives after all reports of the scripts.
      await visit(context, [site.embedding(`${site.url}/reports/last`)])
      await until(() => site.received.has('last'))
      t.same([...site.received], ['last'], 'no script has sent a report')
      t.equal(
        await storedAt(context, `${tenant.url}/nowhere`),
        0,
        'and none has stored anything at the origin of the files',
      )
    },
  )

  await t.test('The same bytes run when a server sends them without our headers', { timeout: 120_000 }, async (t) => {
    const running = files.filter(({ runs }) => runs !== undefined)
    t.ok(running.length >= 30, String(running.length))
    const seen = await visit(
      context,
      running.map(({ name, runs }) =>
        runs === 'as a script' ? site.embedding(`${site.url}/sniffed/${name}`) : `${site.url}/${String(runs)}/${name}`,
      ),
    )
    await until(() => running.every(({ name }) => site.received.has(name)))
    t.same(
      running.filter(({ name }) => !site.received.has(name)).map(({ name }) => name),
      [],
      'each script sent its report',
    )
    t.ok(
      seen.dialogs.length >= 20 && seen.titles.filter((title) => title.startsWith('ran')).length >= 20,
      'the browser observed scripts',
    )
    t.ok((await storedAt(context, `${site.url}/page`)) > 0, 'and they stored something')
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
