// The shell blocks of a page of the documentation, in order.
import { readFile } from 'node:fs/promises'

export interface ShellBlock {
  /** `page#n`: the page's path from the project's root, and the number of the block on it, from 1. */
  id: string
  text: string
}

const project = new URL('../../../', import.meta.url)

/** @param page path from the project's root */
export async function shellBlocks(page: string): Promise<ShellBlock[]> {
  const text = await readFile(new URL(page, project), 'utf8')
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = ''], index) => ({
    id: `${page}#${index + 1}`,
    text: block,
  }))
}
