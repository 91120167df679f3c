// The error messages of all parts, as test/errors/messages.txt lists them.
import { globSync, readFileSync } from 'node:fs'
import { collectMessages, type Source } from './collect-messages.ts'

/** The file that stores the list, from the root of the repository. */
export const messagesFile = 'test/errors/messages.txt'

/** Every part that creates errors. */
export const parts = [
  'cli',
  'client',
  'contract',
  'control-plane',
  'docker-proxy',
  'gateway',
  'local',
  'tenant-runtime',
]

/** Returns the list, and how many messages each part has. */
export function listMessages(): { text: string; counts: Map<string, number> } {
  const lists = parts.map((part) => ({ part, messages: collectMessages(sourcesOf(part)) }))
  return {
    text: lists.flatMap(({ part, messages }) => messages.map((message) => `${part} ${message}\n`)).join(''),
    counts: new Map(lists.map(({ part, messages }) => [part, messages.length])),
  }
}

/** Returns the sources of a part, files that Git does not track yet included. */
export function sourcesOf(part: string): Source[] {
  return globSync(`${part}/src/**/*.ts`).map((file) => ({ file, source: readFileSync(file, 'utf8') }))
}
