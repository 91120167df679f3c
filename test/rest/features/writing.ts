// Features of writing: inserts and their responses.
import { json, rejected, type Feature, type Scene, type Seen } from './scene.ts'

export const representation = { prefer: 'return=representation' }

/** Returns the response of a change; with `body` undefined, the response has no body. */
export function changed(status: number, range: string, applied = '', body?: unknown, type = json): Seen {
  return {
    status,
    headers: {
      ...(body === undefined ? {} : { 'content-type': type }),
      ...(range === '' ? {} : { 'content-range': range }),
      ...(applied === '' ? {} : { 'preference-applied': applied }),
    },
    body: body ?? '',
  }
}

export const stored = async ({ t, rows }: Scene, sql: string, wanted: readonly object[]) =>
  t.same(await rows(sql), wanted, sql)
export const low = { id: 1, label: 'low', hall: 'east' }

export const writing: Feature[] = [
  {
    feature: 'insert: without `Prefer`, 201 and an empty body',
    here: 'differs',
    note: "the same for PostgREST's clients, which send a profile; callers of the specification receive the record",
    check: async (scene) => {
      await scene.expect(
        { method: 'POST', path: '/shelves', body: { id: 10, label: 'ten' }, headers: { 'content-profile': 'public' } },
        changed(201, '*/*'),
      )
      await scene.expect(
        { method: 'POST', path: '/shelves', body: { id: 11, label: 'eleven' } },
        changed(201, '*/*', '', { id: 11, label: 'eleven', hall: null }),
      )
      await stored(scene, 'select id, label from shelves where id > 9 order by id', [
        { id: 10, label: 'ten' },
        { id: 11, label: 'eleven' },
      ])
    },
  },
  {
    feature: '`return=minimal`',
    here: 'same',
    check: async (scene) => {
      await scene.expect(
        { method: 'POST', path: '/shelves', body: { id: 12, label: 'twelve' }, headers: { prefer: 'return=minimal' } },
        changed(201, '*/*', 'return=minimal'),
      )
      await stored(scene, 'select label, hall from shelves where id = 12', [{ label: 'twelve', hall: null }])
    },
  },
  {
    feature: '`return=representation`, with `select`',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { method: 'POST', path: '/shelves', body: { id: 13, label: 'x' }, headers: representation },
        changed(201, '*/*', 'return=representation', [{ id: 13, label: 'x', hall: null }]),
      )
      await expect(
        {
          method: 'POST',
          path: '/shelves?select=name:label,id::text',
          body: { id: 14, label: 'y' },
          headers: representation,
        },
        changed(201, '*/*', 'return=representation', [{ name: 'y', id: '14' }]),
      )
    },
  },
  {
    feature: '`return=headers-only`: `Location`',
    here: 'same',
    check: async ({ t, request, expect }) => {
      const headers = { prefer: 'return=headers-only' }
      const at = (location: string): Seen => ({
        status: 201,
        headers: { 'content-range': '*/*', 'preference-applied': 'return=headers-only', location },
        body: '',
      })
      await expect(
        { method: 'POST', path: '/shelves', body: { id: 15, label: 'z' }, headers },
        at('/rest/v1/shelves?id=eq.15'),
      )
      await expect(
        {
          method: 'POST',
          path: '/book_shelves',
          body: '{"book_id":9007199254740993,"shelf_id":1}',
          headers: { ...headers, 'content-type': 'application/json' },
        },
        at('/rest/v1/book_shelves?book_id=eq.9007199254740993&shelf_id=eq.1'),
      )
      await expect(
        { method: 'POST', path: '/odd%20names', body: { 'a,b': 15 }, headers },
        at('/rest/v1/odd%20names?a%2Cb=eq.15'),
      )
      await expect(
        { method: 'POST', path: '/cheap_books', body: { id: 15, title: 'view', price: 1 }, headers },
        at('/rest/v1/cheap_books?id=eq.15'),
      )
      await expect(
        { method: 'POST', path: '/lines', body: [{ at: 1 }], headers },
        changed(201, '*/*', 'return=headers-only'),
      )
      await expect(
        {
          method: 'POST',
          path: '/shelves',
          body: { id: 16, label: 'csv' },
          headers: { ...headers, accept: 'text/csv' },
        },
        at('/rest/v1/shelves?id=eq.16'),
      )
      t.same(
        (await request('GET', '/book_shelves?book_id=eq.9007199254740993&shelf_id=eq.1&select=shelf_id')).list(),
        [{ shelf_id: 1 }],
        'which is where it is',
      )
    },
  },
  {
    feature: 'bulk insert: an array, all or nothing',
    here: 'same',
    check: async (scene) => {
      await scene.expect(
        {
          method: 'POST',
          path: '/shelves?select=id&columns=id,label,hall',
          body: [
            { id: 20, label: 'a' },
            { id: 21, label: 'b', hall: 'h' },
          ],
          headers: { prefer: 'return=representation,count=exact' },
        },
        changed(201, '*/2', 'return=representation, count=exact', [{ id: 20 }, { id: 21 }]),
      )
      await scene.expect(
        {
          method: 'POST',
          path: '/shelves',
          body: [
            { id: 22, label: 'c' },
            { id: 23, label: 'a' },
          ],
        },
        rejected(409, '23505', 'duplicate key value violates unique constraint "shelves_label_key"'),
      )
      await stored(scene, 'select id, hall from shelves where id between 20 and 29 order by id', [
        { id: 20, hall: null },
        { id: 21, hall: 'h' },
      ])
    },
  },
  {
    feature: 'an empty array, an empty object',
    here: 'same',
    check: async (scene) => {
      await scene.expect(
        { method: 'POST', path: '/lines', body: [], headers: representation },
        changed(201, '*/*', 'return=representation', []),
      )
      await scene.expect(
        { method: 'POST', path: '/lines', body: {}, headers: representation },
        changed(201, '*/*', 'return=representation', [{ entry: null, at: null }]),
      )
      await scene.expect(
        { method: 'POST', path: '/lines?select=at', body: [{}, {}], headers: representation },
        changed(201, '*/*', 'return=representation', [{ at: null }, { at: null }]),
      )
      await stored(scene, 'select count(*)::int as n from lines where at is null', [{ n: 3 }])
    },
  },
  {
    feature: 'keys that some objects omit',
    here: 'same',
    check: async ({ expect }) => {
      const body = [
        { id: 24, label: 'd', hall: 'h' },
        { id: 25, label: 'e' },
      ]
      await expect(
        { method: 'POST', path: '/shelves?select=id,hall', body, headers: representation },
        rejected(400, 'PGRST102', 'All object keys must match'),
      )
      await expect(
        { method: 'POST', path: '/shelves?select=id,hall&columns=id,label,hall', body, headers: representation },
        changed(201, '*/*', 'return=representation', [
          { id: 24, hall: 'h' },
          { id: 25, hall: null },
        ]),
      )
    },
  },
  {
    feature: '`columns`',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/shelves?columns=id,label',
          body: { id: 26, label: 'f', hall: 'ignored', more: 'ignored' },
          headers: representation,
        },
        changed(201, '*/*', 'return=representation', [{ id: 26, label: 'f', hall: null }]),
      )
      await expect(
        {
          method: 'POST',
          path: '/odd%20names?columns="a,b","c.d"&select="c.d","g h"',
          body: { 'a,b': 26, 'c.d': 'x', 'g h': 'ignored' },
          headers: representation,
        },
        changed(201, '*/*', 'return=representation', [{ 'c.d': 'x', 'g h': null }]),
      )
      await expect(
        {
          method: 'PATCH',
          path: '/shelves?id=eq.26&columns=hall',
          body: { hall: 'h', label: 'ignored' },
          headers: representation,
        },
        changed(200, '0-0/*', 'return=representation', [{ id: 26, label: 'f', hall: 'h' }]),
      )
      await expect(
        { method: 'POST', path: '/shelves?columns=id,lable', body: {} },
        rejected(400, 'PGRST204', "Could not find the 'lable' column of 'shelves' in the schema cache", {
          hint: 'Did you mean "label"?',
        }),
      )
    },
  },
  {
    feature: '`missing=default`',
    here: 'same',
    check: async ({ expect }) => {
      const select = '/books?select=id,pages,available,added&columns=id,title,pages,available,added'
      const prefer = 'missing=default,return=representation'
      await expect(
        {
          method: 'POST',
          path: select,
          body: [
            { id: 50, title: 'a' },
            { id: 51, title: 'b', pages: 7, available: null, added: '2026-02-03T04:05:06Z' },
          ],
          headers: { prefer },
        },
        changed(201, '*/*', 'missing=default, return=representation', [
          { id: 50, pages: 100, available: true, added: '2026-01-01T00:00:00+00:00' },
          { id: 51, pages: 7, available: null, added: '2026-02-03T04:05:06+00:00' },
        ]),
      )
      await expect(
        {
          method: 'POST',
          path: '/books?columns=id,title,pages',
          body: [
            { id: 52, title: 'a' },
            { id: 53, title: 'b', pages: 7 },
          ],
          headers: { prefer: 'missing=null' },
        },
        rejected(400, '23502', 'null value in column "pages" of relation "books" violates not-null constraint'),
      )
    },
  },
  {
    feature: 'values of every type are stored exactly',
    here: 'same',
    check: async ({ t, request, rows }) => {
      const record =
        '{"id":9007199254740995,"title":"x","tags":["a","b,c"],"years":"[1,5)","size":{"width":1,"height":2.50},' +
        '"extra":{"n": 12345678901234567890.10},"price":98765432109876543210.12300,"genre":"novel"}'
      const response = await request('POST', '/books?select=id,title,tags,years,size,extra,price,genre', {
        body: record,
        headers: { 'content-type': 'application/json' },
      })
      t.equal(response.text, record)
      t.same(await rows('select id::text, price::text, extra::text from books where id = 9007199254740995'), [
        { id: '9007199254740995', price: '98765432109876543210.12300', extra: '{"n": 12345678901234567890.10}' },
      ])
      await request('PATCH', '/books?id=eq.9007199254740995', {
        body: '{"price":0.10000000000000000000001,"extra":[9007199254740997]}',
        headers: { 'content-type': 'application/json' },
      })
      t.equal(
        (await request('GET', '/books?id=eq.9007199254740995&select=price,extra')).text,
        '[{"price":0.10000000000000000000001,"extra":[9007199254740997]}]',
      )
    },
  },
  {
    feature: 'generated and identity columns',
    here: 'same',
    check: async ({ t, request, expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/books?select=gross',
          body: { id: 54, title: 'x', price: 1.25 },
          headers: representation,
        },
        changed(201, '*/*', 'return=representation', [{ gross: 2.5 }]),
      )
      await expect(
        { method: 'POST', path: '/books', body: { id: 55, title: 'x', gross: 2 } },
        rejected(400, '428C9', 'cannot insert a non-DEFAULT value into column "gross"', {
          details: 'Column "gross" is a generated column.',
        }),
      )
      await expect(
        { method: 'POST', path: '/sales', body: { id: 9, book_id: 1, number: 1, amount: 1, sold_on: '2026-01-01' } },
        rejected(400, '428C9', 'cannot insert a non-DEFAULT value into column "id"', {
          details: 'Column "id" is an identity column defined as GENERATED ALWAYS.',
          hint: 'Use OVERRIDING SYSTEM VALUE to override.',
        }),
      )
      await expect(
        { method: 'POST', path: '/authors?select=id', body: { name: 'Dot' }, headers: representation },
        changed(201, '*/*', 'return=representation', [{ id: 101 }]),
      )
      await expect(
        { method: 'POST', path: '/authors?select=id', body: { id: 70, name: 'Eve' }, headers: representation },
        changed(201, '*/*', 'return=representation', [{ id: 70 }]),
      )
      const some = await request('POST', '/authors?select=id,name&columns=id,name', {
        body: [{ name: 'Fay' }, { id: 71, name: 'Gus' }],
        headers: { prefer: 'missing=default, return=representation' },
      })
      t.match(
        { status: some.status, rows: some.list() },
        {
          status: 201,
          rows: [
            { id: Number, name: 'Fay' },
            { id: 71, name: 'Gus' },
          ],
        },
      )
    },
  },
]
