// Filters the Engine's events: one JSON object per line, without those of other owners.
import { linesOf } from '@tenantry/contract'
import { ownEvent } from './responses.ts'
import type { ProxyRules } from './proxy-rules.ts'

const maxLineBytes = 1024 * 1024

/** Yields the lines of own events. @throws Error for a line that is too long or not valid JSON */
export async function* ownEvents(source: AsyncIterable<Buffer>, rules: ProxyRules): AsyncGenerator<string, undefined> {
  for await (const event of jsonLines(source)) {
    const ownEventBody = ownEvent(event, rules)
    if (ownEventBody !== undefined) yield `${JSON.stringify(ownEventBody)}\n`
  }
}

/** Yields each line's value and skips empty lines. @throws Error for a line that is too long or not valid JSON */
export async function* jsonLines(source: AsyncIterable<Buffer>): AsyncGenerator<unknown, undefined> {
  for await (const line of linesOf(
    source,
    maxLineBytes,
    () => new Error('The Docker Engine sent an event of more than 1 MiB.'),
  )) {
    if (line.trim() !== '') yield JSON.parse(line)
  }
}
