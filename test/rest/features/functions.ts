// Features of functions: how they are called and chosen, and their responses.
import { give, gives, json, rejected, rows, type Feature, type Request, type Scene, type Seen } from './scene.ts'

/** Returns the response of a function: a value, an object, or an array of `n` rows. */
export function response(
  body: unknown,
  { status = 200, range = '0-0/*', ...more }: { status?: number; range?: string } & Record<string, unknown> = {},
): Seen {
  return {
    status,
    headers: { 'content-type': json, 'content-range': range, ...(more as Record<string, string>) },
    body,
  }
}

/** Calls a function by POST. */
export const call = (path: string, body: object | string, more: Partial<Request> = {}): Request => ({
  method: 'POST',
  path: `/rpc/${path}`,
  body,
  ...more,
  headers: { 'content-type': 'application/json', ...more.headers },
})

/** Checks a call both by POST and by GET. */
export function both(name: string, args: Record<string, unknown>, wanted: Seen): Feature['check'] {
  return async ({ expect }) => {
    await expect(call(name, args), wanted)
    const search = Object.entries(args)
      .map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`)
      .join('&')
    await expect({ path: `/rpc/${name}${search === '' ? '' : `?${search}`}` }, wanted)
  }
}

const text = async ({ t, request: send }: Scene, request: Request, wanted: string) =>
  t.equal((await send(request.method ?? 'GET', request.path, request)).text, wanted, request.path)

export const functions: Feature[] = [
  { feature: 'scalar functions', here: 'same', check: both('add', { a: 1, b: 2 }, response(3)) },
  { feature: 'default arguments', here: 'same', check: both('add', { a: 1 }, response(2)) },
  {
    feature: 'arguments and values of every type, exactly',
    here: 'same',
    check: async (scene) => {
      await text(scene, call('echo_bigint', '{"v":9007199254740993}'), '9007199254740993')
      await text(scene, { path: '/rpc/echo_bigint?v=9007199254740993' }, '9007199254740993')
      await text(scene, call('echo_numeric', '{"v":12345678901234567890.123450}'), '12345678901234567890.123450')
      await text(scene, { path: '/rpc/echo_numeric?v=12345678901234567890.123450' }, '12345678901234567890.123450')
      await text(
        scene,
        call('echo_json', '{"v":{"n":12345678901234567890,"a":[null,"x"]}}'),
        '{"a": [null, "x"], "n": 12345678901234567890}',
      )
      await text(
        scene,
        { path: `/rpc/echo_json?v=${encodeURIComponent('{"n":12345678901234567890}')}` },
        '{"n": 12345678901234567890}',
      )
      await text(scene, call('echo_texts', '{"v":["a","b,c",null,"\\"d"]}'), '["a","b,c",null,"\\"d"]')
      await text(scene, { path: `/rpc/echo_texts?v=${encodeURIComponent('{a,"b,c",null}')}` }, '["a","b,c",null]')
      await text(scene, call('echo_json', '{"v":null}'), 'null')
    },
  },
  {
    feature: 'composite values',
    here: 'same',
    check: async ({ expect }) => {
      await expect(call('echo_size', { v: { width: 1, height: 2.5 } }), response({ width: 1, height: 2.5 }))
      await expect({ path: '/rpc/echo_size?v=(1,2.5)' }, response({ width: 1, height: 2.5 }))
    },
  },
  {
    feature: 'sets of scalars, with `limit` and `offset`',
    here: 'same',
    check: async ({ expect }) => {
      await expect({ path: '/rpc/lengths' }, response([13, 9, 14, 3], { range: '0-3/*' }))
      await expect(
        { path: '/rpc/lengths?limit=2&offset=1', headers: { prefer: 'count=exact' } },
        response([9, 14], { status: 206, range: '1-2/4', 'preference-applied': 'count=exact' }),
      )
    },
  },
  {
    feature: 'filters on results without columns',
    here: 'same',
    check: gives(
      '/rpc/lengths?id=eq.1',
      rejected(
        400,
        '42703',
        'The function "lengths" returns values, or rows with unknown columns, so the query cannot have filters.',
      ),
    ),
  },
  {
    feature: 'one row: an object',
    here: 'same',
    check: both(
      'first_book',
      {},
      response({
        id: 1,
        title: 'The quick fox',
        author_id: 1,
        editor_id: 2,
        isbn: 'i-1',
        genre: 'novel',
        price: 9.99,
        pages: 120,
        available: true,
        tags: ['red', 'with, comma'],
        years: '[1990,2000)',
        size: { width: 10, height: 20 },
        extra: { a: 1, b: { c: 'x' } },
        added: '2026-01-01T00:00:00+00:00',
        words: "'fox':3 'quick':2",
        gross: 19.98,
      }),
    ),
  },
  {
    feature: 'one row with `select`',
    here: 'same',
    check: gives(
      '/rpc/first_book?select=id,shelves(label)&shelves.order=id',
      response({ id: 1, shelves: [{ label: 'low' }, { label: 'high' }] }),
    ),
  },
  {
    feature: 'no row from a function that returns one',
    here: 'same',
    check: gives('/rpc/no_book?select=id,title', response({ id: null, title: null })),
  },
  {
    feature: 'table-valued functions: select, filters, order, limit',
    here: 'same',
    check: give(
      [
        '/rpc/books_of?author=1&select=id,title',
        [
          { id: 1, title: 'The quick fox' },
          { id: 2, title: 'Lazy dogs' },
        ],
      ],
      ['/rpc/books_of?author=1&select=id&price=gt.10', [{ id: 2 }]],
      ['/rpc/books_of?author=1&select=id&order=id.desc&limit=1', [{ id: 2 }]],
      ['/rpc/books_of?author=1&select=id&or=(id.eq.1,title.eq.x)', [{ id: 1 }]],
      ['/rpc/books_of?author=9', []],
    ),
  },
  {
    feature: 'table-valued functions by POST',
    here: 'same',
    check: async ({ expect }) => {
      await expect(call('books_of?select=id&order=id.desc', { author: 1 }), rows([{ id: 2 }, { id: 1 }]))
    },
  },
  {
    feature: '`returns table (…)`, also with one column',
    here: 'same',
    check: give(
      [
        '/rpc/totals?order=total.desc',
        [
          { book_id: 1, total: 22.5 },
          { book_id: 2, total: 20 },
        ],
      ],
      ['/rpc/totals?select=total&book_id=eq.2', [{ total: 20 }]],
      ['/rpc/titles?title=like.*dogs', [{ title: 'Lazy dogs' }, { title: 'Foxes and dogs' }]],
    ),
  },
  {
    feature: '`out` arguments, also a single one',
    here: 'same',
    check: async (scene) => {
      await both('pair', { n: 3 }, response({ a: 3, b: 'n3' }))(scene)
      await both('single', {}, response({ response: 42 }))(scene)
    },
  },
  {
    feature: 'untyped functions: `returns record`',
    here: 'same',
    check: async ({ expect }) => {
      await expect(call('untyped', {}), response({ one: 1, two: 2 }))
      await expect({ path: '/rpc/untyped_set' }, response([{ one: 1 }, { one: 2 }], { range: '0-1/*' }))
      await expect(
        { path: '/rpc/untyped_set?select=one' },
        rejected(
          400,
          '42703',
          'The function "untyped_set" returns values, or rows with unknown columns, so the query cannot have select.',
        ),
      )
    },
  },
  {
    feature: 'void: 204',
    here: 'same',
    check: async ({ expect, rows, t }) => {
      await expect(call('touch', {}), { status: 204, headers: { 'content-range': '*/*' }, body: '' })
      t.same(await rows("select count(*)::int as n from lines where entry = 'touched'"), [{ n: 1 }])
    },
  },
  {
    feature: 'variadic arguments',
    here: 'same',
    check: async ({ expect }) => {
      await expect(call('join_all', { parts: ['a', 'b'] }), response('a+b'))
      await expect({ path: '/rpc/join_all?parts=a&parts=b,c&parts=%22d%22%0Ae' }, response('a+b,c+"d"\ne'))
      await expect({ path: '/rpc/join_all?parts=%7Ba,b%7D' }, response('a+b'))
      await expect(call('join_all', {}), response(''))
    },
  },
  {
    feature: 'overloaded functions, by their arguments',
    here: 'same',
    check: async (scene) => {
      await both('area', { side: 3 }, response(9))(scene)
      await both('area', { width: 2, height: 3 }, response(6))(scene)
    },
  },
  {
    feature: 'a call that fits several overloads, because of defaults',
    here: 'same',
    check: both(
      'near',
      { a: 1 },
      rejected(
        300,
        'PGRST203',
        'Could not choose the best candidate function between: public.near(a => integer), public.near(a => integer, b => integer)',
        {
          hint: 'Try renaming the parameters or the function itself in the database so function overloading can be resolved',
        },
      ),
    ),
  },
  {
    feature: 'an overload with any number of further arguments',
    here: 'same',
    check: async (scene) => {
      await both('far', { a: 1 }, response('one'))(scene)
      await scene.expect(call('far', { a: 1, b: [2] }), response('many'))
    },
  },
  {
    feature: 'overloads that differ only in types',
    here: 'same',
    check: both(
      'twice',
      { n: 2 },
      rejected(
        300,
        'PGRST203',
        'Could not choose the best candidate function between: public.twice(n => integer), public.twice(n => text)',
        {
          hint: 'Try renaming the parameters or the function itself in the database so function overloading can be resolved',
        },
      ),
    ),
  },
  {
    feature: 'a single unnamed JSON argument: the whole body',
    here: 'same',
    check: async (scene) => {
      await scene.expect(call('whole', { a: 1 }), response({ a: 1 }))
      await text(scene, call('whole', '[9007199254740993, {"b": 1.0}]'), '[9007199254740993, {"b": 1.0}]')
      await text(scene, call('whole', '"text"'), '"text"')
    },
  },
  {
    feature: 'a body that is not an object, for named arguments',
    here: 'same',
    check: async ({ expect }) => {
      await expect(call('add', [1]), rejected(400, 'PGRST102', 'All object keys must match'))
      await expect(
        call('add', '5'),
        rejected(404, 'PGRST202', 'Could not find the function public.add without parameters in the schema cache', {
          details:
            'Searched for the function public.add without parameters or with a single unnamed json/jsonb parameter,' +
            ' but no matches were found in the schema cache.',
        }),
      )
    },
  },
  {
    feature: '`immutable` and `stable` functions by GET and HEAD',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { method: 'HEAD', path: '/rpc/books_of?author=1', headers: { prefer: 'count=exact' } },
        {
          status: 200,
          headers: { 'content-type': json, 'content-range': '0-1/2', 'preference-applied': 'count=exact' },
          body: '',
        },
      )
    },
  },
]
