// The Engine's events as they pass: one JSON object a line, those of others left out.
import { ownEvent } from './answers.ts'
import type { DoorRules } from './door-rules.ts'

const longestLine = 1024 * 1024

/** @throws Error for a line that is too long or no JSON */
export async function* ownEvents(source: AsyncIterable<Buffer>, rules: DoorRules): AsyncGenerator<string, undefined> {
  let rest = Buffer.alloc(0)
  for await (const chunk of source) {
    rest = Buffer.concat([rest, chunk])
    for (let end = rest.indexOf(0x0a); end !== -1; end = rest.indexOf(0x0a)) {
      const line = rest.toString('utf8', 0, end).trim()
      rest = rest.subarray(end + 1)
      const shown = line === '' ? undefined : ownEvent(JSON.parse(line), rules)
      if (shown !== undefined) yield `${JSON.stringify(shown)}\n`
    }
    if (rest.length > longestLine) throw new Error('the Engine sent an event of more than 1 MiB')
  }
}
