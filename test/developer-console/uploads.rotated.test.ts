// Uploads by drag and drop in a real browser: files of the disk, dropped on a folder by the browser's own protocol.
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { openConsole, signIn } from '#test/console/support/open-console.ts'
import { openScreen } from '#test/console/support/page-checks.ts'
import { controlSql } from '#test/support/installation.ts'
import { startTenants } from './support/tenant-console.ts'

const { create, browser, installation } = await startTenants()
const planBytes = 1_000_000
await controlSql(installation, `update plans set file_bytes = ${planBytes} where id = 'Pro'`)
const tenant = await create('acme')
await tenant.api('POST', '/storage/v1/bucket', { name: 'pictures' })

const directory = await mkdtemp(join(tmpdir(), 'tenantry-drop-'))
t.teardown(() => rm(directory, { recursive: true, force: true }))
const files: Record<string, Buffer> = {
  'lighthouse.png': await readFile('examples/lighthouse.png'),
  'large.bin': Buffer.alloc(planBytes + 1, 7),
  '<b>notes.txt': Buffer.from('the lamp is lit'),
}
for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content)
await mkdir(join(directory, 'folder'))

const opened = await openConsole(browser, `${tenant.url}/console`, {}, 'Secret key')
const { page } = opened
await signIn(opened, tenant.secretKey)

/** Drops files at an element, as a user does with the mouse. @returns whether the folder was marked before the drop */
async function drop(target: string, names: string[]): Promise<boolean> {
  const box = await page.getByText(target, { exact: true }).boundingBox()
  if (box === null) throw new Error(`${target} is not visible.`)
  const at = { x: box.x + box.width / 2, y: box.y + box.height / 2 }
  const data = { items: [], files: names.map((name) => join(directory, name)), dragOperationsMask: 1 }
  const session = await page.context().newCDPSession(page)
  await session.send('Input.dispatchDragEvent', { type: 'dragEnter', ...at, data })
  await session.send('Input.dispatchDragEvent', { type: 'dragOver', ...at, data })
  const isMarked = (await page.locator('.drop-over').count()) === 1
  await session.send('Input.dispatchDragEvent', { type: 'drop', ...at, data })
  await session.detach()
  return isMarked
}

const upload = (of: Page, name: string) =>
  of.getByRole('list', { name: 'Uploads' }).getByRole('listitem').filter({ hasText: name })

t.test(
  'Files that are dropped on the content of a folder are stored in it; one above the quota shows the error',
  async (t) => {
    await openScreen(page, `${tenant.url}/console#/files/pictures/coast`)
    const status = page.waitForResponse(
      (response) => response.request().method() === 'POST' && response.url().endsWith('/large.bin'),
    )
    t.ok(await drop('The folder is empty.', Object.keys(files)), 'the folder is marked')
    const rejected = await status
    const error = await uploadLarge()
    t.same([rejected.status(), error.status, error.code], [413, 413, 'QUOTA_EXCEEDED'])
    const box = upload(page, 'large.bin').getByRole('alert')
    // The files next to it may be stored before or after the rejection, so the bytes in use differ.
    await box.getByText(new RegExp(error.message.replace(/\d+ are used\.$/, '\\d+ are used\\.'))).waitFor()
    t.match(
      await box.textContent(),
      `Status 413 · QUOTA_EXCEEDED · request ${rejected.headers()['x-request-id'] ?? 'none'}`,
    )
    for (const name of ['lighthouse.png', '<b>notes.txt']) {
      await upload(page, name).getByText('uploaded').waitFor()
      await page.getByRole('cell', { name }).waitFor()
      const path = `${tenant.url}/storage/v1/object/pictures/coast/${encodeURIComponent(name)}`
      const stored = await fetch(path, { headers: { authorization: `Bearer ${tenant.secretKey}` } })
      t.same(Buffer.from(await stored.arrayBuffer()), files[name])
    }
    t.same(await page.locator('.drop-over').count(), 0)
    t.match(await tenant.api('GET', '/storage/v1/bucket/pictures'), { file_count: 2 })
  },
)

t.test('A folder is not uploaded, and the page states why; the files next to it are', async (t) => {
  await openScreen(page, `${tenant.url}/console#/files/pictures`)
  await drop('Drop files here, or choose them', ['folder', 'lighthouse.png'])
  await page.getByText('folder is a folder. Drop the files in it instead.').waitFor()
  await upload(page, 'lighthouse.png').getByText('uploaded').waitFor()
  t.match(await tenant.api('GET', '/storage/v1/bucket/pictures'), { file_count: 3 })
  t.same(opened.violations, [])
})

/** Sends the file that is too large without the console. */
async function uploadLarge(): Promise<{ status: number; code: string; message: string }> {
  const response = await fetch(`${tenant.url}/storage/v1/object/pictures/large.bin`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tenant.secretKey}` },
    body: new Uint8Array(planBytes + 1),
  })
  return { status: response.status, ...((await response.json()) as { code: string; message: string }) }
}
