// The uses of listed words that stay, each with its reason.
import type { Exception } from './word.ts'

export const exceptions: readonly Exception[] = [
  { files: 'scripts/words/', reason: 'The list itself.' },
  { files: 'test/scripts/words.test.ts', reason: 'Examples of what the check finds.' },
  {
    files: 'prisma/migrations/',
    reason: 'Databases record the checksums of the migrations that were applied to them.',
  },
]
