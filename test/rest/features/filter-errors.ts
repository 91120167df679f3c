// Features of filtering rows: what is no filter, or none of its column, and how that is said.
import { bad } from './filters.ts'
import { gives, rejected, type Feature } from './scene.ts'

export const filterErrors: Feature[] = [
  bad(
    'a value that does not fit',
    '/books?id=eq.x',
    '22P02',
    'a value does not fit the type of its field',
    'invalid input syntax for type bigint: "x"',
  ),
  bad(
    'a value that is not in the enum',
    '/books?genre=eq.opera',
    '22P02',
    'a value does not fit the type of its field',
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
    here: 'differs',
    note: '400; PostgREST returns 404, as if a function were missing',
    check: gives(
      '/books?pages=cs.{1}',
      rejected(400, '42883', 'this operator does not fit the type of the field', {
        details: 'operator does not exist: integer @> unknown',
      }),
    ),
  },
  bad(
    '`is.true` of a column that is not a boolean',
    '/books?pages=is.true',
    '42804',
    'this operator does not fit the type of the field',
    'argument of IS TRUE must be type boolean, not type integer',
  ),
  bad(
    'an unknown column',
    '/books?titel=eq.x',
    '42703',
    'query parameter "titel": collection "books" has no field "titel"',
    null,
    'did you mean "title"?',
  ),
  bad(
    'a value without an operator',
    '/books?id=1',
    'PGRST100',
    'query parameter "id": an operator is expected (eq, neq, gt, gte, lt, lte, like, ilike, match, imatch, isdistinct, ' +
      'fts, plfts, phfts, wfts, cs, cd, ov, sl, sr, nxl, nxr, adj, in, is), then a dot and a value: at character 1 of "1"',
  ),
  bad(
    'a list that is not closed',
    '/books?id=in.(1,2',
    'PGRST100',
    'query parameter "id": "," is expected at character 8 of "in.(1,2"',
  ),
  bad(
    'more text after a list',
    '/books?id=in.(1,2)x',
    'PGRST100',
    'query parameter "id": nothing is expected after the list at character 9 of "in.(1,2)x"',
  ),
  bad(
    'a tree that is not closed',
    '/books?or=(id.eq.1',
    'PGRST100',
    'query parameter "or": ")" is expected at character 9 of "(id.eq.1"',
  ),
  bad(
    '`is` with another word',
    '/books?id=is.nil',
    'PGRST100',
    'query parameter "id": is takes one of null, not_null, true, false, unknown at character 7 of "is.nil"',
  ),
]
