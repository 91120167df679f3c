// Features of writing: inserts, updates, deletions, and what they answer.
import { json, refused, rows, type Feature, type Scene, type Seen } from './scene.ts'

const representation = { prefer: 'return=representation' }

/** Of a change: `body` undefined means nothing is sent back. */
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

const stored = async ({ t, rows }: Scene, sql: string, wanted: readonly object[]) =>
  t.same(await rows(sql), wanted, sql)
const low = { id: 1, label: 'low', hall: 'east' }

export const writing: Feature[] = [
  {
    feature: 'insert: without `Prefer` 201 and nothing',
    here: 'differs',
    note: "so for PostgREST's clients, which name a profile; plain HTTP gets the record",
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
    check: async ({ t, ask, expect }) => {
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
        (await ask('GET', '/book_shelves?book_id=eq.9007199254740993&shelf_id=eq.1&select=shelf_id')).list(),
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
          path: '/shelves?select=id',
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
        refused(409, '23505', 'duplicate key value violates unique constraint "shelves_label_key"'),
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
    feature: 'keys that some of the objects leave out',
    here: 'differs',
    note: 'taken as `null`, with `missing=default` as the default; there 400 `PGRST102` without `columns`',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/shelves?select=id,hall',
          body: [
            { id: 24, label: 'd', hall: 'h' },
            { id: 25, label: 'e' },
          ],
          headers: representation,
        },
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
        refused(400, 'PGRST204', 'collection "shelves" has no field "lable"', { hint: 'did you mean "label"?' }),
      )
    },
  },
  {
    feature: '`missing=default`',
    here: 'same',
    check: async ({ expect }) => {
      const select = '/books?select=id,pages,available,added'
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
          path: '/books',
          body: [
            { id: 52, title: 'a' },
            { id: 53, title: 'b', pages: 7 },
          ],
          headers: { prefer: 'missing=null' },
        },
        refused(400, '23502', 'field "pages" is required'),
      )
    },
  },
  {
    feature: 'values of every type go in exactly',
    here: 'same',
    check: async ({ t, ask, rows }) => {
      const record =
        '{"id":9007199254740995,"title":"x","tags":["a","b,c"],"years":"[1,5)","size":{"width":1,"height":2.50},' +
        '"extra":{"n": 12345678901234567890.10},"price":98765432109876543210.12300,"genre":"novel"}'
      const answer = await ask('POST', '/books?select=id,title,tags,years,size,extra,price,genre', {
        body: record,
        headers: { 'content-type': 'application/json' },
      })
      t.equal(answer.text, record)
      t.same(await rows('select id::text, price::text, extra::text from books where id = 9007199254740995'), [
        { id: '9007199254740995', price: '98765432109876543210.12300', extra: '{"n": 12345678901234567890.10}' },
      ])
      await ask('PATCH', '/books?id=eq.9007199254740995', {
        body: '{"price":0.10000000000000000000001,"extra":[9007199254740997]}',
        headers: { 'content-type': 'application/json' },
      })
      t.equal(
        (await ask('GET', '/books?id=eq.9007199254740995&select=price,extra')).text,
        '[{"price":0.10000000000000000000001,"extra":[9007199254740997]}]',
      )
    },
  },
  {
    feature: 'generated and identity columns',
    here: 'same',
    check: async ({ t, ask, expect }) => {
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
        refused(400, '428C9', 'a field is made by the database alone', {
          details: 'cannot insert a non-DEFAULT value into column "gross"',
        }),
      )
      await expect(
        { method: 'POST', path: '/sales', body: { id: 9, book_id: 1, number: 1, amount: 1, sold_on: '2026-01-01' } },
        refused(400, '428C9', 'a field is made by the database alone', {
          details: 'cannot insert a non-DEFAULT value into column "id"',
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
      const some = await ask('POST', '/authors?select=id,name', {
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
  {
    feature: 'update: 204, or 200 with what was changed',
    here: 'same',
    check: async (scene) => {
      await scene.expect({ method: 'PATCH', path: '/shelves?id=eq.2', body: { hall: 'p' } }, changed(204, '0-0/*'))
      await stored(scene, 'select id, hall from shelves where id in (1, 2) order by id', [
        { id: 1, hall: 'east' },
        { id: 2, hall: 'p' },
      ])
      await scene.expect(
        {
          method: 'PATCH',
          path: '/shelves?id=lte.2&select=id,hall&order=id.desc',
          body: { hall: 'q' },
          headers: representation,
        },
        changed(200, '0-1/*', 'return=representation', [
          { id: 2, hall: 'q' },
          { id: 1, hall: 'q' },
        ]),
      )
      await scene.expect(
        { method: 'PATCH', path: '/shelves?id=eq.1', body: [{ hall: 'east' }], headers: { prefer: 'count=exact' } },
        changed(204, '0-0/1', 'count=exact'),
      )
      await scene.expect(
        { method: 'PATCH', path: '/shelves?id=eq.999', body: { hall: 'q' }, headers: representation },
        changed(200, '*/*', 'return=representation', []),
      )
    },
  },
  {
    feature: 'filters of an update: trees, places in JSON',
    here: 'same',
    check: async (scene) => {
      await scene.expect(
        {
          method: 'PATCH',
          path: '/authors?or=(prefs->>lang.eq.de,and(id.eq.1,name.eq.none))&select=id',
          body: { born: '1901-02-03' },
          headers: representation,
        },
        changed(200, '0-0/*', 'return=representation', [{ id: 2 }]),
      )
      await stored(scene, "select id from authors where born = '1901-02-03'", [{ id: 2 }])
    },
  },
  {
    feature: 'update with an empty object',
    here: 'differs',
    note: 'changes nothing, and answers with the rows as if it had; there with none',
    check: async ({ expect }) => {
      await expect(
        { method: 'PATCH', path: '/shelves?id=eq.1', body: {}, headers: representation },
        changed(200, '0-0/*', 'return=representation', [low]),
      )
      await expect({ method: 'PATCH', path: '/shelves?id=eq.1', body: {} }, changed(204, '0-0/*'))
    },
  },
  {
    feature: 'delete: 204, or 200 with what was deleted',
    here: 'same',
    check: async (scene) => {
      await scene.expect(
        {
          method: 'POST',
          path: '/lines',
          body: [
            { entry: 'd', at: 1 },
            { entry: 'd', at: 2 },
            { entry: 'd', at: 3 },
          ],
          headers: { prefer: 'return=minimal' },
        },
        changed(201, '*/*', 'return=minimal'),
      )
      await scene.expect({ method: 'DELETE', path: '/lines?entry=eq.d&at=eq.1' }, changed(204, '*/*'))
      await scene.expect(
        {
          method: 'DELETE',
          path: '/lines?entry=eq.d&at=eq.2&select=at',
          headers: { prefer: 'return=representation,count=exact' },
        },
        changed(200, '*/1', 'return=representation, count=exact', [{ at: 2 }]),
      )
      await stored(scene, "select at from lines where entry = 'd'", [{ at: 3 }])
      await scene.expect(
        { method: 'DELETE', path: '/lines?at=eq.99', headers: representation },
        changed(200, '*/*', 'return=representation', []),
      )
      await scene.expect(
        { method: 'DELETE', path: '/lines?entry=eq.d', headers: { 'content-type': 'application/json' } },
        changed(204, '*/*'),
      )
    },
  },
  {
    feature: 'update or delete without a filter',
    here: 'differs',
    note: 'refused; there every row, without `pg-safeupdate`',
    check: async (scene) => {
      const message = (what: string) =>
        `${what} needs a filter; to mean every record, say so, for example with ?id=not.is.null`
      await scene.expect(
        { method: 'PATCH', path: '/shelves', body: { hall: 'all' } },
        refused(400, '21000', message('UPDATE')),
      )
      await scene.expect(
        { method: 'DELETE', path: '/shelves?select=id&order=id' },
        refused(400, '21000', message('DELETE')),
      )
      await stored(scene, "select count(*)::int as n from shelves where hall = 'all' or id = 1", [{ n: 1 }])
    },
  },
  {
    feature: '`limit`, `offset` of an update or deletion',
    here: 'absent',
    note: 'gone there since version 13',
    check: async ({ expect }) => {
      const message = (what: string) => `${what} takes no limit and no offset: it is for all that match`
      await expect(
        { method: 'PATCH', path: '/shelves?id=gt.0&order=id&limit=1', body: { hall: 'x' } },
        refused(400, 'PGRST100', message('UPDATE')),
      )
      await expect({ method: 'DELETE', path: '/shelves?id=gt.0&offset=1' }, refused(400, 'PGRST100', message('DELETE')))
    },
  },
  {
    feature: 'filters on relations in a change',
    here: 'absent',
    check: async ({ expect }) => {
      await expect(
        { method: 'DELETE', path: '/authors?select=id,profiles()&profiles=is.null' },
        refused(400, 'PGRST100', "DELETE can't ask for rows of other collections"),
      )
    },
  },
  {
    feature: 'embedding in what a change sends back',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/books?select=id,author:authors!author_id(name),shelves(label)',
          body: { id: 60, title: 'x', author_id: 2 },
          headers: representation,
        },
        changed(201, '*/*', 'return=representation', [{ id: 60, author: { name: 'Ben' }, shelves: [] }]),
      )
      await expect(
        {
          method: 'PATCH',
          path: '/books?id=eq.60&select=...authors!author_id(name)',
          body: { author_id: 1 },
          headers: representation,
        },
        changed(200, '0-0/*', 'return=representation', [{ name: 'Ada' }]),
      )
      await expect(
        { method: 'DELETE', path: '/books?id=eq.60&select=id,authors!author_id(name)', headers: representation },
        changed(200, '*/*', 'return=representation', [{ id: 60, authors: { name: 'Ada' } }]),
      )
    },
  },
  {
    feature: 'embedding a table of the name that the statement uses itself',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/changed?select=id,changed(id),of(id)',
          body: { id: 2, of: 1 },
          headers: representation,
        },
        changed(201, '*/*', 'return=representation', [{ id: 2, changed: [], of: { id: 1 } }]),
      )
    },
  },
  {
    feature: 'aggregates in what a change sends back',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/lines?select=entry,at.sum()',
          body: [
            { entry: 's', at: 1 },
            { entry: 's', at: 2 },
          ],
          headers: representation,
        },
        changed(201, '*/*', 'return=representation', [{ entry: 's', sum: 3 }]),
      )
    },
  },
  {
    feature: 'singular: exactly one row, or nothing is done',
    here: 'same',
    check: async (scene) => {
      const headers = { ...representation, accept: 'application/vnd.pgrst.object+json' }
      const type = 'application/vnd.pgrst.object+json; charset=utf-8'
      const two = refused(406, 'PGRST116', 'Cannot coerce the result to a single JSON object', {
        details: 'The result contains 2 rows',
      })
      await scene.expect(
        { method: 'POST', path: '/lines', body: [{ entry: 'one', at: 7 }], headers },
        changed(201, '*/*', 'return=representation', { entry: 'one', at: 7 }, type),
      )
      await scene.expect(
        {
          method: 'POST',
          path: '/lines',
          body: [
            { entry: 'two', at: 7 },
            { entry: 'two', at: 8 },
          ],
          headers,
        },
        two,
      )
      await scene.expect({ method: 'PATCH', path: '/shelves?id=lte.2', body: { hall: 'none' }, headers }, two)
      await scene.expect(
        { method: 'DELETE', path: '/lines?entry=eq.nowhere', headers },
        refused(406, 'PGRST116', 'Cannot coerce the result to a single JSON object', {
          details: 'The result contains 0 rows',
        }),
      )
      await stored(
        scene,
        "select count(*)::int as n from lines where entry = 'two' union all select count(*)::int from shelves where hall = 'none'",
        [{ n: 0 }, { n: 0 }],
      )
    },
  },
  {
    feature: '`handling=strict, max-affected`',
    here: 'same',
    check: async (scene) => {
      const headers = { prefer: 'handling=strict, max-affected=1' }
      const applied = 'handling=strict, max-affected=1'
      const two = refused(400, 'PGRST124', 'Query result exceeds max-affected preference constraint', {
        details: 'The query affects 2 rows',
      })
      await scene.expect({ method: 'PATCH', path: '/shelves?id=lte.2', body: { hall: 'none' }, headers }, two)
      await scene.expect({ method: 'DELETE', path: '/shelves?id=lte.2', headers }, two)
      await stored(scene, "select count(*)::int as n from shelves where id <= 2 and hall <> 'none'", [{ n: 2 }])
      await scene.expect(
        { method: 'PATCH', path: '/shelves?id=eq.2', body: { hall: 'r' }, headers },
        changed(204, '0-0/*', applied),
      )
      await scene.expect(
        { method: 'PATCH', path: '/shelves?id=lte.2', body: { hall: 's' }, headers: { prefer: 'max-affected=1' } },
        changed(204, '0-1/*'),
      )
    },
  },
  {
    feature: 'row-level security of changes',
    here: 'same',
    check: async ({ expect, rows }) => {
      const denied = (status: number) =>
        refused(status, '42501', 'the row-level security policy of the collection does not allow this')
      await expect(
        { method: 'POST', path: '/drafts', as: 'ada', body: { id: 5, text: 'x' }, headers: representation },
        changed(201, '*/*', 'return=representation', [{ id: 5, owner: 'ada', text: 'x' }]),
      )
      await expect({ method: 'POST', path: '/drafts', as: 'ada', body: { id: 6, owner: 'ben' } }, denied(403))
      await expect({ method: 'POST', path: '/drafts', as: undefined, body: { id: 6, owner: 'ben' } }, denied(401))
      await expect(
        {
          method: 'PATCH',
          path: '/drafts?id=gt.0&select=id&order=id',
          as: 'ada',
          body: { text: 'mine' },
          headers: representation,
        },
        changed(200, '0-1/*', 'return=representation', [{ id: 1 }, { id: 5 }]),
      )
      await expect({ method: 'DELETE', path: '/drafts?id=eq.2', as: 'ada' }, changed(204, '*/*'))
      await expect(
        { method: 'GET', path: '/drafts?select=id,owner,text&order=id' },
        {
          status: 200,
          headers: { 'content-type': json, 'content-range': '0-2/*' },
          body: await rows('select id, owner, text from drafts order by id'),
        },
      )
    },
  },
  {
    feature: 'insert into views',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { method: 'POST', path: '/cheap_books', body: { id: 61, title: 'cheap', price: 1 }, headers: representation },
        changed(201, '*/*', 'return=representation', [{ id: 61, title: 'cheap', price: 1, author_id: null }]),
      )
      await expect(
        { method: 'POST', path: '/cheap_books', body: { id: 62, title: 'dear', price: 11 } },
        refused(400, '44000', 'the record lies outside of what the view shows', {
          details: 'new row violates check option for view "cheap_books"',
        }),
      )
    },
  },
  {
    feature: 'partitioned tables',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { method: 'POST', path: '/events', body: { id: 9, kind: 'b', at: '2026-03-01' }, headers: representation },
        changed(201, '*/*', 'return=representation', [{ id: 9, kind: 'b', at: '2026-03-01' }]),
      )
      await expect({ method: 'PATCH', path: '/events?id=eq.9', body: { kind: 'a' } }, changed(204, '0-0/*'))
      await expect(
        { method: 'POST', path: '/events', body: { id: 9, kind: 'c', at: '2026-03-01' } },
        refused(400, '23514', 'no partition of relation "events" found for row'),
      )
    },
  },
  {
    feature: 'collections that a schema describes',
    here: 'differs',
    note: 'checked by the schema, before Postgres',
    check: async ({ expect, ask, t }) => {
      await expect(
        {
          method: 'POST',
          path: '/notes?select=owner,text,rank',
          as: 'ada',
          body: { text: 'x', rank: 1.5 },
          headers: representation,
        },
        changed(201, '*/*', 'return=representation', [{ owner: 'ada', text: 'x', rank: 1.5 }]),
      )
      await expect(
        { method: 'POST', path: '/notes', as: 'ada', body: { text: 'x', rank: '1.5' } },
        refused(400, '22P02', 'field "rank" must be a number'),
      )
      await expect(
        { method: 'POST', path: '/notes', as: 'ada', body: { rank: 1 } },
        refused(400, '23502', 'field "text" is required'),
      )
      await expect({ path: '/notes', as: 'ben' }, rows([]))
      t.equal((await ask('GET', '/notes?select=text,...notes(id)', { as: 'ada' })).status, 400)
    },
  },
  ...(['text/csv', 'application/x-www-form-urlencoded', 'text/plain', 'application/octet-stream'] as const).map(
    (type): Feature => ({
      feature: `bodies of type ${type}`,
      here: 'absent',
      check: async ({ expect }) => {
        await expect(
          { method: 'POST', path: '/lines', body: 'entry=1', headers: { 'content-type': type } },
          refused(400, 'PGRST102', `Content-Type not acceptable: ${type}`, { hint: 'send application/json' }),
        )
      },
    }),
  ),
]
