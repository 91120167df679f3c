// Splits the output of programs in a tenant's containers into lines. The programs read the tenant's own tables, among
// others.
import { linesOf as boundedLines } from '@tenantry/contract'

/**
 * More than any line of a backup's statements. A tenant that alters its system tables could print lines of any length.
 */
const maxLineBytes = 64 * 1024 * 1024

/**
 * Yields lines without their ends. The last line needs none.
 * @throws Error for a line of more than 64 MiB
 */
export function linesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<string, undefined> {
  return boundedLines(source, maxLineBytes)
}
