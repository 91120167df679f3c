// Features of headers: preferences, formats of responses, profiles, OPTIONS.
import { gives, json, rejected, rows, type Feature } from './scene.ts'
import { response } from './functions.ts'
import { changed } from './writing.ts'

const one = '/authors?id=eq.1&select=id,born,mentor_id,prefs->n'
const row = { id: 1, born: '1815-12-10', mentor_id: null, n: null }
const notAvailable = (type: string) => rejected(406, 'PGRST107', `None of these media types are available: ${type}`)

export const forms: Feature[] = [
  {
    feature: '`Accept: application/json`, `*/*`, none',
    here: 'same',
    check: async ({ expect }) => {
      for (const accept of [
        'application/json',
        '*/*',
        'text/html, application/xhtml+xml, */*;q=0.8',
        'application/json; charset=utf-8',
        'application/vnd.pgrst.array+json',
      ])
        await expect({ path: one, headers: { accept } }, rows([row]))
      await expect({ path: one }, rows([row]))
    },
  },
  {
    feature: 'singular: `application/vnd.pgrst.object+json`',
    here: 'same',
    check: async ({ expect }) => {
      const headers = { accept: 'application/vnd.pgrst.object+json' }
      const type = 'application/vnd.pgrst.object+json; charset=utf-8'
      await expect({ path: one, headers }, response(row, { 'content-type': type }))
      await expect(
        { path: one, headers: { accept: 'application/vnd.pgrst.object' } },
        response(row, { 'content-type': type }),
      )
      for (const [filter, n] of [
        ['id=gt.0', 3],
        ['id=eq.99', 0],
      ] as const)
        await expect(
          { path: `/authors?${filter}`, headers: { ...headers, prefer: 'count=exact' } },
          rejected(406, 'PGRST116', 'Cannot coerce the result to a single JSON object', {
            details: `The result contains ${n} rows`,
          }),
        )
    },
  },
  {
    feature: '`nulls=stripped`, of arrays and objects',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { path: one, headers: { accept: 'application/vnd.pgrst.array+json;nulls=stripped' } },
        rows([{ id: 1, born: '1815-12-10' }], {
          'content-type': 'application/vnd.pgrst.array+json;nulls=stripped; charset=utf-8',
        }),
      )
      await expect(
        { path: one, headers: { accept: 'application/vnd.pgrst.object+json; nulls=stripped' } },
        response(
          { id: 1, born: '1815-12-10' },
          { 'content-type': 'application/vnd.pgrst.object+json;nulls=stripped; charset=utf-8' },
        ),
      )
    },
  },
  {
    feature: '`text/csv`',
    here: 'same',
    check: async ({ expect, tenant }) => {
      const headers = { accept: 'text/csv' }
      const type = 'text/csv; charset=utf-8'
      await tenant
        .client('service')
        .from('lines')
        .insert(['a,b', 'say "x"', 'two\nlines', '', null, ' x ', 'a\\b'].map((entry, at) => ({ entry, at })))
      await expect(
        { path: '/lines?select=entry,at&order=at', headers },
        response('entry,at\n"a,b",0\n"say ""x""",1\n"two\nlines",2\n"",3\n,4\n" x ",5\n"a\\\\b",6', {
          range: '0-6/*',
          'content-type': type,
        }),
      )
      await expect(
        { path: '/books?select=tags,size,t:title,id,id&id=eq.1', headers },
        response('tags,size,t,id,id\n"{red,""with, comma""}","(10,20)","The quick fox",1,1', { 'content-type': type }),
      )
      await expect({ path: '/lines?at=eq.99', headers }, response('\n', { range: '*/*', 'content-type': type }))
      await expect(
        { path: '/odd%20names?select="a,b","e\\"f"', headers },
        response('a,b,e"f\n1,quote', { 'content-type': type }),
      )
      await expect({ path: '/shelves?select=books()&id=eq.1', headers }, response('\n', { 'content-type': type }))
      await expect(
        { method: 'POST', path: '/lines', body: { entry: 'x,y' }, headers },
        changed(201, '*/*', '', 'entry,at\n"x,y",', type),
      )
    },
  },
  {
    feature: '`text/csv` of more than a hundred columns',
    here: 'same',
    check: async ({ t, request }) => {
      const names = Array.from({ length: 150 }, (_, n) => `c${n}:id`)
      t.equal(
        (await request('GET', `/shelves?id=eq.1&select=${names.join(',')}`, { headers: { accept: 'text/csv' } })).text,
        `${names.map((_, n) => `c${n}`).join(',')}\n${names.map(() => '1').join(',')}`,
      )
    },
  },
  {
    feature: '`application/geo+json`',
    here: 'absent',
    note: 'it needs an extension, which only the operator of a shared database can install; your own SQL can make it',
    check: gives({ path: one, headers: { accept: 'application/geo+json' } }, notAvailable('application/geo+json')),
  },
  {
    feature: 'plans: `application/vnd.pgrst.plan+json`',
    here: 'same',
    note: 'for the service role',
    check: async ({ t, request, expect, rows }) => {
      const accept = 'application/vnd.pgrst.plan+json; for="application/json"; options=analyze|verbose'
      const explain = (method: string, path: string, accept: string, body?: object) =>
        request(method, path, { headers: { accept }, ...(body === undefined ? {} : { body }) })
      await expect({ path: one, as: 'ada', headers: { accept } }, notAvailable(accept))
      await expect({ path: '/shelves/1', headers: { accept } }, notAvailable(accept))
      t.match(await explain('GET', one, accept), {
        status: 200,
        headers: { 'content-type': `${accept}; charset=utf-8` },
        text: /^\[\s*\{\s*"Plan": ?\{\s*"Node Type": ?"Aggregate"[^]*"Actual Rows"/,
      })
      t.match(await explain('GET', '/lines?limit=2000', 'application/vnd.pgrst.plan; for="text/csv"'), {
        status: 200,
        headers: { 'content-type': 'application/vnd.pgrst.plan+text; for="text/csv"; charset=utf-8' },
        text: /^Aggregate {2}\(cost=/,
      })
      t.match(await explain('GET', '/lines', 'application/vnd.pgrst.plan; options=wal'), {
        status: 400,
        text: /"code":"22023"/,
      })
      const plan = 'application/vnd.pgrst.plan'
      const before = await rows('select count(*) from shelves')
      for (const [method, path, body] of [
        ['POST', '/shelves', { id: 90, label: 'ninety' }],
        ['PATCH', '/shelves?id=eq.1', { hall: 'x' }],
        ['PUT', '/shelves?id=eq.91', { id: 91, label: 'x' }],
        ['DELETE', '/shelves?id=eq.1', undefined],
        ['POST', '/rpc/add', { a: 1 }],
        ['GET', '/rpc/add?a=1', undefined],
      ] as const)
        t.match(await explain(method, path, plan, body), { status: 200, text: /\(cost=/ }, `${method} ${path}`)
      t.same(await rows('select count(*) from shelves'), before, 'a plan changes nothing')
    },
  },
  {
    feature: 'a media type that nothing makes',
    here: 'same',
    check: gives(
      { path: one, headers: { accept: 'application/octet-stream' } },
      notAvailable('application/octet-stream'),
    ),
  },
  {
    feature: 'an unknown media type',
    here: 'same',
    check: gives({ path: one, headers: { accept: 'application/xml' } }, notAvailable('application/xml')),
  },
  {
    feature: 'OpenAPI at the root, and nowhere else',
    here: 'same',
    check: async ({ t, request, expect }) => {
      t.match(await request('GET', '/'), { status: 200, headers: { 'content-type': json } })
      t.match(await request('GET', '/', { headers: { accept: 'application/openapi+json' } }), {
        status: 200,
        headers: { 'content-type': 'application/openapi+json; charset=utf-8' },
      })
      t.match((await request('GET', '/')).json(), { swagger: '2.0', paths: { '/books': Object } })
      await expect(
        { path: '/shelves', headers: { accept: 'application/openapi+json' } },
        notAvailable('application/openapi+json'),
      )
    },
  },
  {
    feature: '`Accept-Profile`, `Content-Profile`',
    here: 'same',
    note: 'there is one schema, `public`, unless the tenant sets `db_schemas`',
    check: async ({ expect }) => {
      await expect({ path: one, headers: { 'accept-profile': 'public' } }, rows([row]))
      const other = rejected(406, 'PGRST106', 'Invalid schema: other', {
        hint: 'Only the following schemas are exposed: public',
      })
      await expect({ path: one, headers: { 'accept-profile': 'other' } }, other)
      await expect({ method: 'POST', path: '/lines', body: {}, headers: { 'content-profile': 'other' } }, other)
    },
  },
  {
    feature: '`Preference-Applied`',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { path: one, headers: { prefer: 'count=exact, handling=lenient, foo=bar, respond-async' } },
        rows([row], { range: '0-0/1', 'preference-applied': 'count=exact, handling=lenient' }),
      )
      await expect(
        { path: one, headers: { prefer: 'COUNT=Exact,count=planned' } },
        rows([row], { range: '0-0/1', 'preference-applied': 'count=exact' }),
      )
      await expect(
        {
          method: 'POST',
          path: '/changed?columns=id',
          body: [{ id: 1 }],
          headers: { prefer: 'return=minimal, missing=default, resolution=ignore-duplicates' },
        },
        changed(201, '*/*', 'return=minimal, missing=default, resolution=ignore-duplicates'),
      )
    },
  },
  {
    feature: '`handling=strict` with an unknown preference',
    here: 'same',
    check: gives(
      { path: one, headers: { prefer: 'handling=strict, foo, count=some' } },
      rejected(400, 'PGRST122', 'Invalid preferences given with handling=strict', {
        details: 'Invalid preferences: foo, count=some',
      }),
    ),
  },
  {
    feature: '`tx=rollback`, where it is not allowed',
    here: 'same',
    check: async ({ expect, rows, t }) => {
      await expect(
        { method: 'POST', path: '/lines', body: { entry: 'kept' }, headers: { prefer: 'tx=rollback, return=minimal' } },
        changed(201, '*/*', 'return=minimal'),
      )
      t.same(await rows("select entry from lines where entry = 'kept'"), [{ entry: 'kept' }])
    },
  },
  {
    feature: 'OPTIONS: `Allow`',
    here: 'same',
    check: async ({ t, request, expect }) => {
      const allows = (...methods: string[]) => ({
        status: 200,
        headers: { allow: ['OPTIONS', ...methods].join(',') },
        body: '',
      })
      const all = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']
      for (const [path, methods] of [
        ['/shelves', all],
        ['/lines', all.filter((method) => method !== 'PUT')],
        ['/counted_books', ['GET', 'HEAD']],
        ['/storage_objects', ['GET', 'HEAD']],
        ['/rpc/add', ['GET', 'HEAD', 'POST']],
        ['/rpc/touch', ['POST']],
        ['/', ['GET', 'HEAD']],
      ] as const)
        await expect({ method: 'OPTIONS', path }, allows(...methods))
      t.match(await request('OPTIONS', '/nowhere'), { status: 404 })
      t.match(await request('OPTIONS', '/rpc/nothing'), { status: 404 })
    },
  },
  {
    feature: "a browser's preflight",
    here: 'same',
    check: async ({ t, request }) => {
      const response = await request('OPTIONS', '/shelves', {
        headers: {
          origin: 'http://example.org',
          'access-control-request-method': 'PATCH',
          'access-control-request-headers': 'prefer',
        },
      })
      t.match(response, {
        status: 204,
        text: '',
        headers: {
          'access-control-allow-origin': '*',
          'access-control-allow-methods': /PATCH/,
          'access-control-allow-headers': 'prefer',
        },
      })
    },
  },
  {
    feature: 'headers that browser scripts may read',
    here: 'same',
    check: async ({ t, request }) => {
      t.match((await request('GET', one, { headers: { origin: 'http://example.org' } })).headers, {
        'access-control-allow-origin': '*',
        'access-control-expose-headers': /Content-Range.*Location/,
      })
    },
  },
]

/** Features of a runtime whose operator allows rollbacks, and does not allow aggregates. */
export const settings: Feature[] = [
  {
    feature: '`Server-Timing`',
    here: 'same',
    check: async ({ t, request }) => {
      const phases = /^jwt;dur=[\d.]+, parse;dur=[\d.]+, plan;dur=[\d.]+, transaction;dur=[\d.]+, response;dur=[\d.]+$/
      for (const path of ['/shelves', '/lines?limit=2000', '/rpc/add?a=1', '/nowhere', '/a/b/c'])
        t.match((await request('GET', path)).headers['server-timing'], phases, path)
    },
  },
  {
    feature: 'disallowed aggregates',
    here: 'same',
    check: async (scene) => {
      const disallowed = rejected(400, 'PGRST123', 'Use of aggregate functions is not allowed')
      await gives('/shelves?select=count()', disallowed)(scene)
      await gives('/books?select=id,shelves(id.max())', disallowed)(scene)
      await gives('/sales?select=...editions(number.sum())', disallowed)(scene)
    },
  },
  {
    feature: '`tx=rollback`, `tx=commit`',
    here: 'same',
    check: async ({ expect, rows, t }) => {
      const prefer = 'tx=rollback, return=representation'
      await expect(
        { method: 'POST', path: '/lines', body: { entry: 'gone' }, headers: { prefer } },
        changed(201, '*/*', prefer, [{ entry: 'gone', at: null }]),
      )
      await expect(
        { method: 'PATCH', path: '/shelves?id=eq.1&select=hall', body: { hall: 'gone' }, headers: { prefer } },
        changed(200, '0-0/*', prefer, [{ hall: 'gone' }]),
      )
      await expect(
        { method: 'DELETE', path: '/book_shelves?book_id=eq.1&select=shelf_id&order=shelf_id', headers: { prefer } },
        changed(200, '*/*', prefer, [{ shelf_id: 1 }, { shelf_id: 2 }]),
      )
      await expect(
        { method: 'PUT', path: '/shelves?id=eq.1&select=label', body: { id: 1, label: 'gone' }, headers: { prefer } },
        changed(200, '', prefer, [{ label: 'gone' }]),
      )
      await expect(
        {
          method: 'POST',
          path: '/rpc/add_shelf?select=id',
          body: { id: 60, label: 'gone' },
          headers: { prefer: 'tx=rollback' },
        },
        response([{ id: 60 }], { 'preference-applied': 'tx=rollback' }),
      )
      t.same(
        await rows(
          `select label, hall from shelves where id in (1, 60) union all select entry, '' from lines
            union all select book_id::text, '' from book_shelves where book_id = 1`,
        ),
        [
          { label: 'low', hall: 'east' },
          { label: '1', hall: '' },
          { label: '1', hall: '' },
        ],
      )
      await expect(
        { method: 'POST', path: '/lines', body: { entry: 'kept' }, headers: { prefer: 'tx=commit,return=minimal' } },
        changed(201, '*/*', 'tx=commit, return=minimal'),
      )
      t.same(await rows('select entry from lines'), [{ entry: 'kept' }])
    },
  },
]
