// A block of a page in docs/ that a test writes: between a line that names the test and one that ends it.
import { readFile, writeFile } from 'node:fs/promises'
import type { Test } from 'tap'

const end = '<!-- to here -->'

/**
 * The page has the block as it is wanted; with TENANTRY_WRITE_DOCS it is written anew.
 * @param page below docs/
 * @param source the test's path, as the block's first line has it
 */
export async function checkDocumented(t: Test, page: string, source: string, wanted: string): Promise<void> {
  const file = new URL(`../../docs/${page}`, import.meta.url)
  const begin = `<!-- from ${source} -->\n`
  const text = await readFile(file, 'utf8')
  const [before = '', rest = ''] = text.split(begin)
  const [shown = '', ...after] = rest.split(end)
  if (process.env['TENANTRY_WRITE_DOCS'] !== undefined)
    await writeFile(file, `${before}${begin}${wanted}${end}${after.join(end)}`)
  else t.equal(shown, wanted, 'TENANTRY_WRITE_DOCS=1 writes it anew')
}
