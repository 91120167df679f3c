// Features of calls: how a function is chosen, the bodies and parameters of a call, and limits of its result.
import { call, response } from './functions.ts'
import { json, rejected, rows, type Feature, type Request } from './scene.ts'

const raw = (path: string, type: string, body: string | Buffer): Request => ({
  method: 'POST',
  path: `/rpc/${path}`,
  body,
  headers: { 'content-type': type },
})

export const calls: Feature[] = [
  {
    feature: 'unnamed arguments with defaults',
    here: 'same',
    check: async ({ expect }) => {
      await expect(call('grab', {}), response(3))
      await expect({ path: '/rpc/grab?a=5' }, response(7))
    },
  },
  {
    feature: 'an overload with a single unnamed argument, by the type of the body',
    here: 'same',
    check: async ({ expect }) => {
      await expect(call('loads', {}), response(1))
      await expect(call('loads', { x: 1, y: 2 }), response(3))
      await expect(call('loads', { x: 1 }), response({ x: 1 }))
      await expect(call('loads', '[{"x":1},{"x":2}]'), response([{ x: 1 }, { x: 2 }]))
      await expect(raw('loads', 'text/plain', 'some text'), response('some text'))
      await expect(raw('loads', 'text/xml', '<a/>'), response('xml <a/>'))
      await expect(raw('loads', 'application/octet-stream', Buffer.from([0, 1, 255])), response(3))
      const hint =
        'Try renaming the parameters or the function itself in the database so function overloading can be resolved'
      await expect(
        call('twins', { a: 1 }),
        rejected(
          300,
          'PGRST203',
          'Could not choose the best candidate function between: public.twins(json), public.twins(jsonb)',
          { hint },
        ),
      )
      await expect(
        raw('add', 'text/plain', 'x'),
        rejected(404, 'PGRST202', 'Could not find the function public.add in the schema cache', {
          details:
            'Searched for the function public.add with a single unnamed text parameter, but no matches were found in the schema cache.',
        }),
      )
      await expect(
        raw('add', 'application/zip', 'x'),
        rejected(400, 'PGRST102', 'Content-Type not acceptable: application/zip', { hint: 'Send application/json.' }),
      )
    },
  },
  {
    feature: 'an array of objects: the first one counts',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        call('add', [
          { a: 1, b: 2 },
          { b: 5, a: 5 },
        ]),
        response(3),
      )
      for (const body of [[1], [{ a: 1 }, { b: 1 }], [{ a: 1 }, 2]])
        await expect(call('add', body), rejected(400, 'PGRST102', 'All object keys must match'))
    },
  },
  {
    feature: 'bodies of forms and CSV for functions',
    here: 'same',
    check: async ({ expect }) => {
      const form = 'application/x-www-form-urlencoded'
      await expect(raw('add', form, 'a=1&b=2'), response(3))
      await expect(raw('join_all', form, 'parts=a+b&parts=c'), response('a b+c'))
      await expect(raw('add', 'text/csv', 'a,b\n1,2\n'), response(3))
    },
  },
  {
    feature: '`columns` of a call: the arguments to take from the body',
    here: 'same',
    check: async ({ expect }) => {
      await expect(call('add?columns=a', { a: 1, b: 7, c: 8 }), response(2))
      await expect(call('add?columns=a,b', [{ a: 1, b: 7, c: 8 }, 5]), response(8))
    },
  },
  {
    feature: 'a filter with the name of an argument',
    here: 'same',
    check: async ({ expect }) => {
      await expect({ path: '/rpc/books_with?id=1&id=eq.2&select=id' }, rows([{ id: 2 }]))
      await expect({ path: '/rpc/books_with?id=2&id=in.(1,3)&select=id' }, rows([{ id: 3 }]))
      await expect(call('books_with?id=eq.2&select=id', { id: 1 }), rows([{ id: 2 }]))
    },
  },
  {
    feature: 'a domain over a row type as the result',
    here: 'same',
    check: async ({ expect }) => {
      await expect({ path: '/rpc/domain_book?select=id,title' }, response({ id: 1, title: 'The quick fox' }))
      await expect(call('domain_book?select=id', {}), response({ id: 1 }))
    },
  },
  {
    feature: '`count=exact` of a single value',
    here: 'same',
    check: async ({ expect }) => {
      const headers = { prefer: 'count=exact' }
      await expect(
        call('add', { a: 1 }, { headers }),
        response(2, { range: '0-0/1', 'preference-applied': 'count=exact' }),
      )
    },
  },
  {
    feature: '`max-affected` of functions that return sets, and of others',
    here: 'same',
    check: async ({ expect, rows: stored, tenant, t }) => {
      const entries = ['drop 1', 'drop 2', 'drop 3'].map((entry, at) => ({ entry, at }))
      t.equal((await tenant.client('service').from('lines').insert(entries)).error, null)
      const prefer = 'handling=strict, max-affected=2'
      await expect(
        call('drop_lines', { last: 5 }, { headers: { prefer } }),
        rejected(400, 'PGRST124', 'Query result exceeds max-affected preference constraint', {
          details: 'The query affects 3 rows',
        }),
      )
      t.same(
        await stored("select count(*)::int as n from lines where entry like 'drop%'"),
        [{ n: 3 }],
        'nothing is deleted',
      )
      await expect(
        call('drop_lines', { last: 1 }, { headers: { prefer } }),
        response(
          [
            { entry: 'drop 1', at: 0 },
            { entry: 'drop 2', at: 1 },
          ],
          { range: '0-1/*', 'preference-applied': prefer },
        ),
      )
      for (const name of ['touch', 'first_book'])
        await expect(
          call(name, {}, { headers: { prefer } }),
          rejected(
            400,
            'PGRST128',
            'Function must return SETOF or TABLE when max-affected preference is used with handling=strict',
          ),
        )
      await expect(
        call('drop_lines', { last: 5 }, { headers: { prefer: 'max-affected=0' } }),
        rows([{ entry: 'drop 3', at: 2 }]),
      )
    },
  },
  {
    feature: '`Range` applies to GET only',
    here: 'same',
    check: async ({ expect }) => {
      for (const path of ['/rpc/books_of?author=1&select=id', '/books?author_id=eq.1&select=id'])
        await expect(
          { method: 'HEAD', path, headers: { range: '1-5' } },
          { status: 200, headers: { 'content-type': json, 'content-range': '0-1/*' }, body: '' },
        )
    },
  },
  {
    feature: '416 states the number of rows',
    here: 'same',
    check: async ({ expect }) => {
      const beyond = (offset: number, n: number) => {
        const error = rejected(416, 'PGRST103', 'Requested range not satisfiable', {
          details: `An offset of ${offset} was requested, but there are only ${n} rows.`,
        })
        return { ...error, headers: { ...error.headers, 'content-range': `*/${n}` } }
      }
      const headers = { prefer: 'count=exact' }
      await expect({ path: '/books?offset=9&author_id=eq.1', headers }, beyond(9, 2))
      await expect({ path: '/rpc/books_of?author=1&offset=7', headers }, beyond(7, 2))
    },
  },
]
