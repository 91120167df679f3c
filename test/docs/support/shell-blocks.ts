// The code blocks of a page of the documentation, in order.
import { readFile } from 'node:fs/promises'

export interface ShellBlock {
  /** `page#n`: the page's path from the project's root, and the number of the block on it, from 1. */
  id: string
  text: string
}

const project = new URL('../../../', import.meta.url)

/** @param page path from the project's root */
export async function shellBlocks(page: string): Promise<ShellBlock[]> {
  return (await codeBlocks(page, 'sh')).map((text, index) => ({ id: `${page}#${index + 1}`, text }))
}

/**
 * @param page path from the project's root
 * @param language the word behind the three backticks, such as `js`
 */
export async function codeBlocks(page: string, language: string): Promise<string[]> {
  const text = await readFile(new URL(page, project), 'utf8')
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, block = '']) => block,
  )
}
