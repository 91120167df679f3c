// Reads the end of a service's log as one response of bounded size.
import type { LogLine } from '../engines/index.ts'

const maxBytes = 4 * 2 ** 20

interface LogEnd {
  lines: LogLine[]
  /** Whether earlier lines were left out, because the response would be too large. */
  truncated: boolean
}

/**
 * Returns the newest lines, up to the maximum size.
 * @param maxLines their maximum number
 */
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
