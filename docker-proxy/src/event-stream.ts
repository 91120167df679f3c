// The Engine's events as they pass: one JSON object a line, those of others left out.
import { linesOf } from '@tenantry/contract'
import { ownEvent } from './responses.ts'
import type { ProxyRules } from './proxy-rules.ts'

const maxLineBytes = 1024 * 1024

/** @throws Error for a line that is too long or no JSON */
export async function* ownEvents(source: AsyncIterable<Buffer>, rules: ProxyRules): AsyncGenerator<string, undefined> {
  for await (const event of jsonLines(source)) {
    const shown = ownEvent(event, rules)
    if (shown !== undefined) yield `${JSON.stringify(shown)}\n`
  }
}

/** Each line's value; empty lines are left out. @throws Error for a line that is too long or no JSON */
export async function* jsonLines(source: AsyncIterable<Buffer>): AsyncGenerator<unknown, undefined> {
  for await (const line of linesOf(
    source,
    maxLineBytes,
    () => new Error('the Engine sent an event of more than 1 MiB'),
  )) {
    if (line.trim() !== '') yield JSON.parse(line)
  }
}
