// Features of filtering rows: invalid filters, filters that do not fit their column, and their errors.
import { bad } from './filters.ts'
import { gives, rejected, type Feature } from './scene.ts'

export const filterErrors: Feature[] = [
  bad('a value that does not fit', '/books?id=eq.x', '22P02', 'invalid input syntax for type bigint: "x"'),
  bad(
    'a value that is not in the enum',
    '/books?genre=eq.opera',
    '22P02',
    'invalid input value for enum genre: "opera"',
  ),
  bad(
    'an invalid regular expression',
    '/books?title=match.((',
    '2201B',
    'invalid regular expression: parentheses () not balanced',
  ),
  {
    feature: 'an operator that the type does not have',
    here: 'same',
    check: gives(
      '/books?pages=cs.{1}',
      rejected(404, '42883', 'operator does not exist: integer @> unknown', {
        hint: 'No operator matches the given name and argument types. You might need to add explicit type casts.',
      }),
    ),
  },
  bad(
    '`is.true` of a column that is not a boolean',
    '/books?pages=is.true',
    '42804',
    'argument of IS TRUE must be type boolean, not type integer',
  ),
  bad(
    'an unknown column',
    '/books?titel=eq.x',
    '42703',
    'column books.titel does not exist',
    null,
    'Perhaps you meant to reference the column "books.title".',
  ),
  bad(
    'a value without an operator',
    '/books?id=1',
    'PGRST100',
    'Invalid query parameter "id": an operator (eq, neq, gt, gte, lt, lte, like, ilike, match, imatch, isdistinct, ' +
      'fts, plfts, phfts, wfts, cs, cd, ov, sl, sr, nxl, nxr, adj, in, is) is expected, ' +
      'followed by a dot and a value, at character 1 of "1".',
  ),
  bad(
    'a list that is not closed',
    '/books?id=in.(1,2',
    'PGRST100',
    'Invalid query parameter "id": "," is expected at character 8 of "in.(1,2".',
  ),
  bad(
    'text after a list',
    '/books?id=in.(1,2)x',
    'PGRST100',
    'Invalid query parameter "id": the value must end after the list at character 9 of "in.(1,2)x".',
  ),
  bad(
    'a tree that is not closed',
    '/books?or=(id.eq.1',
    'PGRST100',
    'Invalid query parameter "or": ")" is expected at character 9 of "(id.eq.1".',
  ),
  bad(
    '`is` with another word',
    '/books?id=is.nil',
    'PGRST100',
    'Invalid query parameter "id": "is" must be followed by one of null, not_null, true, false, unknown at character 7 of "is.nil".',
  ),
]
