// Features of functions: the methods that call them, the formats of their responses, and rejected calls.
import { response, both, call } from './functions.ts'
import { gives, json, rejected, rows, type Feature } from './scene.ts'

export const functionResponses: Feature[] = [
  {
    feature: 'functions that change data, by GET or HEAD: 405',
    here: 'same',
    check: async ({ expect, rows, t }) => {
      await expect(
        { path: '/rpc/add_shelf?id=50&label=x' },
        rejected(405, '25006', 'cannot execute INSERT in a read-only transaction'),
      )
      await expect(
        { method: 'HEAD', path: '/rpc/add_shelf?id=50&label=x' },
        { status: 405, headers: { 'content-type': json }, body: '' },
      )
      t.same(await rows('select id from shelves where id = 50'), [])
    },
  },
  {
    feature: 'volatile functions by POST run once, also with a count',
    here: 'same',
    check: async ({ expect, rows, t }) => {
      await expect(
        call('add_shelf?select=label', { id: 51, label: 'x' }, { headers: { prefer: 'count=exact' } }),
        response([{ label: 'x' }], { range: '0-0/1', 'preference-applied': 'count=exact' }),
      )
      t.same(await rows('select id, label from shelves where id > 49'), [{ id: 51, label: 'x' }])
    },
  },
  {
    feature: '`return=minimal` of a call',
    here: 'same',
    check: async ({ expect }) => {
      await expect(call('books_of', { author: 1 }, { headers: { prefer: 'count=exact,return=minimal' } }), {
        status: 200,
        headers: { 'content-range': '0-1/2', 'preference-applied': 'count=exact, return=minimal' },
        body: '',
      })
    },
  },
  {
    feature: 'singular, CSV and stripped responses',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { path: '/rpc/books_of?author=2&select=id,isbn', headers: { accept: 'application/vnd.pgrst.object+json' } },
        response({ id: 3, isbn: null }, { 'content-type': 'application/vnd.pgrst.object+json; charset=utf-8' }),
      )
      await expect(
        { path: '/rpc/books_of?author=1', headers: { accept: 'application/vnd.pgrst.object+json' } },
        rejected(406, 'PGRST116', 'Cannot coerce the result to a single JSON object', {
          details: 'The result contains 2 rows',
        }),
      )
      await expect(
        {
          path: '/rpc/books_of?author=2&select=id,isbn',
          headers: { accept: 'application/vnd.pgrst.array+json;nulls=stripped' },
        },
        response([{ id: 3 }], { 'content-type': 'application/vnd.pgrst.array+json;nulls=stripped; charset=utf-8' }),
      )
      await expect(
        { path: '/rpc/books_of?author=1&select=id,title', headers: { accept: 'text/csv' } },
        response('id,title\n1,"The quick fox"\n2,"Lazy dogs"', {
          range: '0-1/*',
          'content-type': 'text/csv; charset=utf-8',
        }),
      )
      await expect(
        { path: '/rpc/first_book?select=id', headers: { accept: 'application/vnd.pgrst.object+json' } },
        response({ id: 1 }, { 'content-type': 'application/vnd.pgrst.object+json; charset=utf-8' }),
      )
      await expect(
        { path: '/rpc/add?a=1', headers: { accept: 'application/vnd.pgrst.object+json' } },
        response(2, { 'content-type': 'application/vnd.pgrst.object+json; charset=utf-8' }),
      )
    },
  },
  {
    feature: 'values as CSV',
    here: 'same',
    check: async ({ expect }) => {
      const headers = { accept: 'text/csv' }
      const csv = { 'content-type': 'text/csv; charset=utf-8' }
      await expect({ path: '/rpc/add?a=1', headers }, response('pgrst_scalar\n2', csv))
      await expect({ path: '/rpc/join_all?parts=a,b', headers }, response('pgrst_scalar\n"a,b"', csv))
      await expect(
        { path: '/rpc/lengths?limit=2', headers },
        response('pgrst_scalar\n13\n9', { range: '0-1/*', ...csv }),
      )
    },
  },
  {
    feature: '`Range` of a call by GET',
    here: 'same',
    check: gives(
      { path: '/rpc/books_of?author=1&select=id', headers: { range: '1-5' } },
      rows([{ id: 2 }], { range: '1-1/*' }),
    ),
  },
  { feature: "the caller's claims", here: 'same', check: gives({ path: '/rpc/caller', as: 'ada' }, response('ada')) },
  {
    feature: 'by an unmodified client',
    here: 'same',
    check: async ({ t, tenant }) => {
      const client = tenant.client('service')
      t.match(await client.rpc('add', { a: 1 }), { data: 2, error: null })
      t.match(
        await client
          .rpc('books_of', { author: 1 }, { get: true, count: 'exact' })
          .select('id')
          .order('id', { ascending: false })
          .limit(1),
        { data: [{ id: 2 }], count: 2, error: null },
      )
      t.match(await client.rpc('books_of', { author: 1 }, { head: true, count: 'exact' }), {
        data: null,
        count: 2,
        error: null,
      })
      t.match(await client.rpc('echo_texts', { v: ['a', 'b c'] }, { get: true }), { data: ['a', 'b c'], error: null })
      t.match(await client.rpc('first_book').single(), { data: { id: 1 }, error: null })
      t.match(await client.rpc('touch'), { data: null, status: 204, error: null })
    },
  },
  {
    feature: 'an unknown function',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        call('ad', {}),
        rejected(404, 'PGRST202', 'Could not find the function public.ad without parameters in the schema cache', {
          details:
            'Searched for the function public.ad without parameters or with a single unnamed json/jsonb parameter, ' +
            'but no matches were found in the schema cache.',
          hint: 'Perhaps you meant to call the function public.add',
        }),
      )
      const hint = 'Perhaps you meant to call the function public.add(a, b)'
      const searched = (what: string) =>
        `Searched for the function public.add ${what}, but no matches were found in the schema cache.`
      await expect(
        call('add', { a: 1, c: 2 }),
        rejected(404, 'PGRST202', 'Could not find the function public.add(a, c) in the schema cache', {
          details: searched('with parameters a, c or with a single unnamed json/jsonb parameter'),
          hint,
        }),
      )
      await expect(
        { path: '/rpc/add?a=1&c=2' },
        rejected(404, 'PGRST202', 'Could not find the function public.add(a, c) in the schema cache', {
          details: searched('with parameters a, c'),
          hint,
        }),
      )
      await expect(
        { path: '/rpc/add' },
        rejected(404, 'PGRST202', 'Could not find the function public.add without parameters in the schema cache', {
          details: searched('without parameters'),
        }),
      )
    },
  },
  {
    feature: '`security definer` functions',
    here: 'absent',
    note: 'the specification allows none',
    check: gives(
      '/rpc/secret',
      rejected(404, 'PGRST202', 'Could not find the function public.secret without parameters in the schema cache', {
        details:
          'Searched for the function public.secret without parameters, but no matches were found in the schema cache.',
      }),
    ),
  },
  {
    feature: 'a hint about reloads, only for functions that do not exist yet',
    here: 'differs',
    note: 'PostgREST has none; the specification demands explicit reloads',
    check: gives(
      '/rpc/zzzzzzzz?a=1',
      rejected(404, 'PGRST202', 'Could not find the function public.zzzzzzzz(a) in the schema cache', {
        details:
          'Searched for the function public.zzzzzzzz with parameter a, but no matches were found in the schema cache.',
        hint: 'A new function is available after POST /admin/reload-schemas.',
      }),
    ),
  },
  {
    feature: 'an argument that does not fit',
    here: 'same',
    check: both('add', { a: 'x' }, rejected(400, '22P02', 'invalid input syntax for type integer: "x"')),
  },
  {
    feature: 'other methods than GET, HEAD and POST',
    here: 'same',
    check: async ({ expect }) => {
      for (const method of ['PUT', 'PATCH', 'DELETE'])
        await expect(
          { method, path: '/rpc/add', ...(method === 'DELETE' ? {} : { body: {} }) },
          rejected(405, 'PGRST101', `Cannot use the ${method} method on RPC`),
        )
    },
  },
  {
    feature: '`Prefer: params=single-object`',
    here: 'same',
    note: 'removed in version 13',
    check: async ({ expect }) => {
      await expect(
        call('add', { a: 1 }, { headers: { prefer: 'handling=strict, params=single-object' } }),
        rejected(400, 'PGRST122', 'Invalid preferences given with handling=strict', {
          details: 'Invalid preferences: params=single-object',
        }),
      )
    },
  },
]
