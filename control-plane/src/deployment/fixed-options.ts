// The options that never change after the first run, which no other file states. Pure, except for the file that stores them.
import { ConfigurationError } from '@tenantry/contract'
import { platformRangeText } from './platform-networks.ts'
import type { PlatformOptions } from './platform-options.ts'
import type { StoredFiles } from './platform-secrets.ts'

/** Stores the options of the first run. @throws ConfigurationError for other ones in a later run */
export function checkFixedOptions(options: PlatformOptions, stored: StoredFiles): void {
  const [name, range] = [`--name ${options.name}`, `--platform-range ${platformRangeText(options)}`]
  const database = options.hasControlDatabase ? 'no --control-database-url-file' : '--control-database-url-file'
  const wanted = [name, range, database]
  const found = stored
    .keep('fixed-options', () => `${wanted.join('\n')}\n`)
    .trimEnd()
    .split('\n')
  for (const [at, text] of wanted.entries())
    if (text !== found[at])
      throw new ConfigurationError(
        `This run has ${text}, but the first one had ${found[at] ?? ''}. The options in the file fixed-options cannot be changed.`,
      )
}
