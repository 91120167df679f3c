// The uses of listed words that stay, each with its reason.
import type { Exception } from './word.ts'

export const exceptions: readonly Exception[] = [
  { files: 'scripts/words/', reason: 'The list itself.' },
  { files: 'scripts/comments/', kind: 'text', reason: 'Words that begin fragments.' },
  { files: 'test/scripts/', kind: 'text', reason: 'Examples of what the checks find.' },
  { name: 'QuestionQuestionToken', reason: "A name of TypeScript's." },
  { files: 'prisma/migrations/', reason: 'Migrations that databases have applied do not change.' },
  { files: 'tenant-runtime/migrations/', reason: 'Migrations that databases have applied do not change.' },
  { word: 'books', files: 'test/rest/', reason: 'Sample data: a table of books and their authors.' },
  { name: 'OPERATION_UNDER_WAY', reason: 'A code of the API; programs compare it.' },
  { name: 'ROLLOUT_UNDER_WAY', reason: 'A code of the API; programs compare it.' },
  { name: 'ANSWER_TOO_LARGE', reason: 'A code of the API; programs compare it.' },
  { name: 'backups_kept', reason: "A field of the API's plans, and a column." },
  { name: 'line_places', reason: 'A field of stored invoices.' },
  { name: 'books_began', reason: 'A column of tenant homes.' },
  { name: 'kept_from', reason: 'A column of the control database.' },
]
