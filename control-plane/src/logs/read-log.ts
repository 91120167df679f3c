// The end of a service's log in one answer, of bounded size.
import type { LogLine } from '../engines/index.ts'

const maxBytes = 4 * 2 ** 20

interface LogEnd {
  lines: LogLine[]
  /** Earlier ones were left out, because all together would be too large. */
  truncated: boolean
}

/** The newest lines that have room. @param maxLines of what comes, too */
export async function readLog(log: AsyncIterable<LogLine>, maxLines: number): Promise<LogEnd> {
  const lines: LogLine[] = []
  let bytes = 0
  let truncated = false
  for await (const line of log) {
    lines.push(line)
    bytes += Buffer.byteLength(line.text)
    while (lines.length > maxLines || bytes > maxBytes) {
      truncated = true
      bytes -= Buffer.byteLength(lines.shift()?.text ?? '')
    }
  }
  return { lines, truncated }
}
