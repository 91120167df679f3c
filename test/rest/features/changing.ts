// Features of writing: updates and deletions, their responses, and writes under policies, through views and into
// partitions.
import { json, rejected, rows, type Feature } from './scene.ts'
import { changed, representation, stored } from './writing.ts'

export const changing: Feature[] = [
  {
    feature: 'update: 204, or 200 with the changed records',
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
    feature: 'filters of an update: trees, paths into JSON',
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
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { method: 'PATCH', path: '/shelves?id=eq.1', body: {}, headers: representation },
        changed(200, '*/*', 'return=representation', []),
      )
      await expect({ method: 'PATCH', path: '/shelves?id=eq.1', body: {} }, changed(204, '*/*'))
      await expect(
        { method: 'PATCH', path: '/shelves?id=eq.1', body: {}, headers: { prefer: 'count=exact' } },
        changed(204, '*/0', 'count=exact'),
      )
    },
  },
  {
    feature: 'delete: 204, or 200 with the deleted records',
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
    here: 'same',
    note: "for PostgREST's clients, which send a profile; plain HTTP callers are rejected",
    check: async (scene) => {
      const message = (what: string) =>
        `${what} requires a filter. To select every record, use for example ?id=not.is.null`
      await scene.expect(
        { method: 'PATCH', path: '/shelves', body: { hall: 'all' } },
        rejected(400, '21000', message('UPDATE')),
      )
      await scene.expect(
        { method: 'DELETE', path: '/shelves?select=id&order=id' },
        rejected(400, '21000', message('DELETE')),
      )
      await stored(scene, "select count(*)::int as n from shelves where hall = 'all' or id = 1", [{ n: 1 }])
      const headers = { 'content-profile': 'public', prefer: 'count=exact' }
      await scene.expect(
        { method: 'PATCH', path: '/spare', body: { label: 'all' }, headers },
        changed(204, '0-1/2', 'count=exact'),
      )
      await stored(scene, "select count(*)::int as n from spare where label = 'all'", [{ n: 2 }])
      await scene.expect({ method: 'DELETE', path: '/spare', headers }, changed(204, '*/2', 'count=exact'))
      await stored(scene, 'select count(*)::int as n from spare', [{ n: 0 }])
    },
  },
  {
    feature: '`limit`, `offset` of an update or deletion',
    here: 'same',
    note: "ignored for PostgREST's clients, which send a profile; plain HTTP callers are rejected",
    check: async ({ expect }) => {
      await expect(
        {
          method: 'PATCH',
          path: '/shelves?id=eq.1&select=id&limit=0&offset=3',
          body: { hall: 'east' },
          headers: { ...representation, 'content-profile': 'public' },
        },
        changed(200, '0-0/*', 'return=representation', [{ id: 1 }]),
      )
      const message = (what: string) =>
        `${what} does not allow a limit or an offset. It applies to all matching records.`
      await expect(
        { method: 'PATCH', path: '/shelves?id=gt.0&order=id&limit=1', body: { hall: 'x' } },
        rejected(400, 'PGRST100', message('UPDATE')),
      )
      await expect(
        { method: 'DELETE', path: '/shelves?id=gt.0&offset=1' },
        rejected(400, 'PGRST100', message('DELETE')),
      )
    },
  },
  {
    feature: 'filters on relations in a change',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { method: 'DELETE', path: '/authors?select=id,profiles()&profiles=is.null' },
        rejected(400, '42703', 'column authors.profiles does not exist'),
      )
      // A filter of an embedded relation only applies to the response.
      await expect(
        {
          method: 'PATCH',
          path: '/authors?id=eq.1&select=id,books!author_id(id)&books.id=eq.2',
          body: { mentor_id: null },
          headers: representation,
        },
        changed(200, '0-0/*', 'return=representation', [{ id: 1, books: [{ id: 2 }] }]),
      )
    },
  },
  {
    feature: 'embedding in the records that a change returns',
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
    feature: 'embedding a table whose name the statement itself uses',
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
    feature: 'aggregates over the records that a change returns',
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
    feature: 'singular: exactly one row, otherwise nothing changes',
    here: 'same',
    check: async (scene) => {
      const headers = { ...representation, accept: 'application/vnd.pgrst.object+json' }
      const type = 'application/vnd.pgrst.object+json; charset=utf-8'
      const two = rejected(406, 'PGRST116', 'Cannot coerce the result to a single JSON object', {
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
        rejected(406, 'PGRST116', 'Cannot coerce the result to a single JSON object', {
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
      const two = rejected(400, 'PGRST124', 'Query result exceeds max-affected preference constraint', {
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
        rejected(status, '42501', 'new row violates row-level security policy for table "drafts"')
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
        rejected(400, '44000', 'new row violates check option for view "cheap_books"'),
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
        rejected(400, '23514', 'no partition of relation "events" found for row'),
      )
    },
  },
  {
    feature: 'collections with a schema',
    here: 'differs',
    note: 'the schema checks them before Postgres, as the specification demands',
    check: async ({ expect, request, t }) => {
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
        rejected(400, '22P02', 'Field "rank" must be a number.'),
      )
      await expect(
        { method: 'POST', path: '/notes', as: 'ada', body: { rank: 1 } },
        rejected(400, '23502', 'Field "text" is required.'),
      )
      await expect({ path: '/notes', as: 'ben' }, rows([]))
      t.equal((await request('GET', '/notes?select=text,...notes(id)', { as: 'ada' })).status, 400)
    },
  },
  ...(['text/plain', 'application/octet-stream', 'text/xml'] as const).map((type): Feature => ({
    feature: `bodies of type ${type} for a table`,
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { method: 'POST', path: '/lines', body: 'entry=1', headers: { 'content-type': type } },
        rejected(400, 'PGRST102', `Content-Type not acceptable: ${type}`, { hint: 'Send application/json.' }),
      )
    },
  })),
]
