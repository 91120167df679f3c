// The uses of listed words that stay, each with its reason.
import type { Exception } from './word.ts'

export const exceptions: readonly Exception[] = [
  { files: 'scripts/words/', reason: 'The list itself.' },
  { files: 'prisma/migrations/', reason: 'Migrations that databases have applied do not change.' },
  { files: 'tenant-runtime/migrations/', reason: 'Migrations that databases have applied do not change.' },
]
