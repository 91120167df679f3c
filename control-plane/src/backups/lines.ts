// Lines of what programs in a tenant's containers print. The tenant's own tables are among what they read.
import { linesOf as boundedLines } from '@tenantry/contract'

/** More than any line of a backup's statements; a tenant that alters its system tables could print any length. */
const maxLineBytes = 64 * 1024 * 1024

/** Without their ends; a last line without one counts too. @throws Error for a line of more than 64 MiB */
export function linesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<string, undefined> {
  return boundedLines(source, maxLineBytes)
}
