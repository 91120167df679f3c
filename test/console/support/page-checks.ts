// What every screen of the consoles and the example page are checked for: it has loaded, it is accessible, its first load is
// small, and it shows texts of others as text.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { until } from '#test/support/until.ts'

const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Texts that set `window.attacked`, or open a frame, in a page that shows them as HTML or runs them. */
export const scripts = [
  '<script>window.attacked = 1</script>',
  '<img src=x onerror="window.attacked = 1">',
  '"><svg onload="window.attacked = 1">',
  'javascript:window.attacked=1',
  '</title><iframe srcdoc="<script>parent.attacked = 1</script>">',
  "';window.attacked=1;//",
  '{{constructor.constructor("window.attacked=1")()}}',
]

/** Opens a screen of a console and waits until it has loaded everything. @param address its URL */
export async function openScreen(page: Page, address: string): Promise<void> {
  await page.goto(address)
  await page.locator('#screen-title').waitFor()
  await until(async () => (await page.locator('.loading').count()) === 0, `the load of ${address}`)
}

/** Returns what axe finds in the page that is serious or critical, and where. */
export async function seriousViolations(page: Page): Promise<{ id: string; impact: string; target: string }[]> {
  await page.evaluate(axeSource)
  return page.evaluate(
    `axe.run().then(({ violations }) => violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, impact, nodes }) => nodes.map(({ target }) => ({ id, impact, target: target.join(' ') }))))`,
  )
}

/**
 * Returns the bytes of a console's page and of the files that it loads first, compressed with gzip.
 * @param built the directory of the console
 * @param base what the page's addresses of its files begin with
 */
export async function firstLoad(built: URL, base: string): Promise<{ files: string[]; bytes: number }> {
  const page = await readFile(new URL('index.html', built), 'utf8')
  const files = [...page.matchAll(new RegExp(`(?:src|href)="${base}([^"]+)"`, 'g'))].map(([, name]) => String(name))
  const sizes = await Promise.all(
    ['index.html', ...files].map(async (name) => gzipSync(await readFile(new URL(name, built)), { level: 9 }).length),
  )
  return { files, bytes: sizes.reduce((sum, size) => sum + size, 0) }
}
