// Checks generated blocks in docs/. A first line that names the test and an end marker enclose each block.
import { readFile, writeFile } from 'node:fs/promises'
import type { Test } from 'tap'

const end = '<!-- to here -->'

/**
 * Asserts that the page contains the wanted block. With TENANTRY_WRITE_DOCS set, writes the block instead.
 * @param page below docs/
 * @param source path of the test, which the block's first line names
 */
export async function checkDocumented(t: Test, page: string, source: string, wanted: string): Promise<void> {
  const file = new URL(`../../docs/${page}`, import.meta.url)
  const begin = `<!-- from ${source} -->\n`
  const text = await readFile(file, 'utf8')
  const [before = '', rest = ''] = text.split(begin)
  const [shown = '', ...after] = rest.split(end)
  if (process.env['TENANTRY_WRITE_DOCS'] !== undefined)
    await writeFile(file, `${before}${begin}${wanted}${end}${after.join(end)}`)
  else t.equal(shown, wanted, 'The page is current; TENANTRY_WRITE_DOCS=1 updates it')
}
