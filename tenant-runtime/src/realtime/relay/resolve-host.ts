// Finds the addresses of a name. A name of several containers has several.
import { lookup } from 'node:dns/promises'

/** Returns the addresses of a name. @throws Error when it has none */
export async function resolveHost(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true })
  return found.map(({ address }) => address)
}
