// Features of errors: exceptions of a tenant's own code, and errors of the interface.
import { gives, rejected, type Feature, type Seen } from './scene.ts'

/** Returns the response of an exception that a tenant's code raises. */
const raised = (status: number, code: string, message: string, more: { details?: string; hint?: string } = {}) =>
  rejected(status, code, message, { ...more, error: 'raised' })
const fail = (code: string, wanted: Seen): Feature['check'] =>
  gives({ method: 'POST', path: '/rpc/fail', body: { code, what: 'no more' } }, wanted)
const detailAndHint = { details: 'a detail', hint: 'a hint' }

export const errors: Feature[] = [
  {
    feature: '`raise exception`: 400 `P0001` with message, detail and hint',
    here: 'same',
    check: fail('P0001', raised(400, 'P0001', 'no more', detailAndHint)),
  },
  {
    feature: "`errcode = 'PT402'`: the status 402",
    here: 'same',
    check: fail('PT402', raised(402, 'PT402', 'no more', detailAndHint)),
  },
  { feature: 'your own codes', here: 'same', check: fail('ZZ001', raised(400, 'ZZ001', 'no more', detailAndHint)) },
  {
    feature: "raised codes of Postgres: their status, with the function's message",
    here: 'same',
    check: async (scene) => {
      await fail('42501', raised(403, '42501', 'no more', detailAndHint))(scene)
      await fail('23505', raised(409, '23505', 'no more', detailAndHint))(scene)
      await fail('22023', raised(400, '22023', 'no more', detailAndHint))(scene)
    },
  },
  {
    feature: 'raised codes of server errors',
    here: 'differs',
    note: '400, because only errors of the service are a 500; PostgREST returns 500',
    check: async (scene) => {
      for (const code of ['57014', 'XX000', '55P03', 'P0004', '40001'])
        await fail(code, raised(400, code, 'no more', detailAndHint))(scene)
    },
  },
  {
    feature: 'errors inside a function',
    here: 'same',
    check: gives(
      { method: 'POST', path: '/rpc/broken', body: {} },
      raised(404, '42P01', 'relation "nowhere" does not exist'),
    ),
  },
  {
    feature: 'errors that a trigger raises',
    here: 'same',
    check: gives(
      { method: 'POST', path: '/lines', body: { entry: 'forbidden' } },
      raised(400, 'P0001', 'not this one'),
    ),
  },
  {
    feature: 'the form: `code`, `message`, `details`, `hint`',
    here: 'differs',
    note: 'also `statusCode` and `error`, which the specification demands of all services',
    check: gives(
      '/books?select=titel',
      rejected(400, '42703', 'column books.titel does not exist', {
        hint: 'Perhaps you meant to reference the column "books.title".',
      }),
    ),
  },
  {
    feature: '`23502`, a missing value',
    here: 'same',
    check: gives(
      { method: 'POST', path: '/books', body: { id: 90 } },
      rejected(400, '23502', 'null value in column "title" of relation "books" violates not-null constraint'),
    ),
  },
  {
    feature: '`23503`, a reference to a missing record',
    here: 'same',
    check: gives(
      { method: 'POST', path: '/books', body: { id: 90, title: 'x', author_id: 99 } },
      rejected(
        409,
        '23503',
        'insert or update on table "books" violates foreign key constraint "books_author_id_fkey"',
        { details: 'Key is not present in table "authors".' },
      ),
    ),
  },
  {
    feature: '`23503`, a record that others refer to',
    here: 'same',
    check: gives(
      { method: 'DELETE', path: '/authors?id=eq.1' },
      rejected(
        409,
        '23503',
        'update or delete on table "authors" violates foreign key constraint "authors_mentor_id_fkey" on table "authors"',
        { details: 'Key is still referenced from table "authors".' },
      ),
    ),
  },
  {
    feature: '`23505`, a duplicate key',
    here: 'same',
    check: gives(
      { method: 'POST', path: '/books', body: { id: 90, title: 'x', isbn: 'i-1' } },
      rejected(409, '23505', 'duplicate key value violates unique constraint "books_isbn_key"'),
    ),
  },
  {
    feature: '`23514`, a value that a check rejects',
    here: 'same',
    check: gives(
      { method: 'POST', path: '/books', body: { id: 90, title: 'x', pages: 0 } },
      rejected(400, '23514', 'new row for relation "books" violates check constraint "books_pages_check"'),
    ),
  },
  {
    feature: '`22…`, values that do not fit',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { method: 'POST', path: '/books', body: { id: 'x', title: 'x' } },
        rejected(400, '22P02', 'invalid input syntax for type bigint: "x"'),
      )
      await expect(
        { method: 'POST', path: '/books', body: { id: 1e19, title: 'x' } },
        rejected(400, '22003', 'value "10000000000000000000" is out of range for type bigint'),
      )
      await expect(
        { method: 'POST', path: '/authors', body: { name: 'x', born: '2026-02-30' } },
        rejected(400, '22008', 'date/time field value out of range: "2026-02-30"'),
      )
      await expect(
        { method: 'POST', path: '/authors', body: { name: 'x', born: 'soon' } },
        rejected(400, '22007', 'invalid input syntax for type date: "soon"'),
      )
      await expect(
        { method: 'POST', path: '/books', body: { id: 90, title: 'x', years: '[2,1)' } },
        rejected(400, '22000', 'range lower bound must be less than or equal to range upper bound'),
      )
      await expect(
        { method: 'POST', path: '/lines', body: { entry: 'a\0b' } },
        rejected(400, '22P05', 'unsupported Unicode escape sequence', {
          details: '\\u0000 cannot be converted to text.',
        }),
      )
      await expect(
        { path: '/books?pages=eq.99999999999' },
        rejected(400, '22003', 'value "99999999999" is out of range for type integer'),
      )
    },
  },
  {
    feature: '`PGRST102`, an invalid body',
    here: 'same',
    check: async ({ expect, t, request }) => {
      const headers = { 'content-type': 'application/json' }
      await expect(
        { method: 'POST', path: '/lines', body: '', headers },
        rejected(400, 'PGRST102', 'The body is empty. It must be a record, or an array of records.'),
      )
      await expect(
        { method: 'PATCH', path: '/lines?at=eq.1', body: ' ', headers },
        rejected(400, 'PGRST102', 'The body is empty. It must have the fields to change.'),
      )
      await expect(
        { method: 'POST', path: '/lines', body: '[1]', headers },
        rejected(400, 'PGRST102', '[0] must be an object.'),
      )
      await expect(
        { method: 'POST', path: '/lines', body: '"x"', headers },
        rejected(400, 'PGRST102', 'The body must be an object.'),
      )
      await expect(
        { method: 'POST', path: '/lines', body: '[{"at":1},null]', headers },
        rejected(400, 'PGRST102', '[1] must be an object.'),
      )
      for (const body of ['{"at":', '{"at":1}x', '{"__proto__":1}', '['.repeat(65) + ']'.repeat(65)])
        t.match((await request('POST', '/lines', { body, headers })).json(), {
          code: 'PGRST102',
          message: 'The body is not valid JSON.',
          details: String,
          hint: null,
        })
    },
  },
  {
    feature: '`PGRST204`, an unknown key of a body',
    here: 'same',
    check: gives(
      { method: 'POST', path: '/books', body: { id: 90, titel: 'x' } },
      rejected(400, 'PGRST204', "Could not find the 'titel' column of 'books' in the schema cache", {
        hint: 'Did you mean "title"?',
      }),
    ),
  },
  {
    feature: '`PGRST205`, an unknown table',
    here: 'same',
    check: gives(
      '/book',
      rejected(404, 'PGRST205', "Could not find the table 'public.book' in the schema cache", {
        hint: "Perhaps you meant the table 'public.books'",
      }),
    ),
  },
  {
    feature: '`PGRST117`, `PGRST125`: an unknown method or path',
    here: 'same',
    check: async ({ expect }) => {
      const noPath = rejected(404, 'PGRST125', 'Invalid path specified in request URL')
      await expect({ path: '/a/b/c' }, noPath)
      await expect({ method: 'POST', path: '/shelves/1', body: {} }, noPath)
      for (const path of ['/', '/shelves'])
        await expect({ method: 'TRACE', path }, rejected(405, 'PGRST117', 'Unsupported HTTP method: TRACE'))
      await expect({ method: 'POST', path: '/' }, rejected(405, 'PGRST117', 'Unsupported HTTP method: POST'))
    },
  },
  {
    feature: '`PGRST301`, `PGRST303`: an invalid token',
    here: 'same',
    note: 'the message does not state which check a forged token fails',
    check: async ({ expect, tenant }) => {
      const bearer = (token: string) => ({ path: '/shelves', headers: { authorization: `Bearer ${token}` } })
      await expect(bearer('e30.e30.x'), rejected(401, 'PGRST301', 'The token is not three parts of base64url.'))
      await expect(
        bearer(tenant.token('ada', { role: 'authenticated', exp: 123_456_789 })),
        rejected(401, 'PGRST303', 'JWT expired'),
      )
    },
  },
  {
    feature: 'a select of more columns than a row can have',
    here: 'same',
    check: gives(
      `/shelves?select=${Array.from({ length: 1_601 }, () => 'id').join(',')}`,
      rejected(400, 'PGRST100', 'Invalid query parameter "select": at most 1600 columns can be selected.'),
    ),
  },
  {
    feature: 'relations nested too deep',
    here: 'differs',
    note: 'at most 16, because tenants share the database',
    check: async ({ t, request }) => {
      t.match(await request('GET', `/authors?select=${'mentor_id('.repeat(17)}id${')'.repeat(17)}`), {
        status: 400,
        text: /relations are nested deeper than 16/,
      })
      t.equal((await request('GET', `/authors?select=${'mentor_id('.repeat(16)}id${')'.repeat(16)}`)).status, 200)
    },
  },
]
