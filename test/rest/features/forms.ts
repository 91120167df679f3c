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
          'content-type': 'application/vnd.pgrst.array+json; nulls=stripped; charset=utf-8',
        }),
      )
      await expect(
        { path: one, headers: { accept: 'application/vnd.pgrst.object+json; nulls=stripped' } },
        response(
          { id: 1, born: '1815-12-10' },
          { 'content-type': 'application/vnd.pgrst.object+json; nulls=stripped; charset=utf-8' },
        ),
      )
    },
  },
  {
    feature: '`text/csv`',
    here: 'differs',
    note: 'quoted as in RFC 4180; a null is empty, an empty text is `""`',
    check: async ({ expect, tenant }) => {
      const headers = { accept: 'text/csv' }
      const type = 'text/csv; charset=utf-8'
      await tenant
        .client('service')
        .from('lines')
        .insert(['a,b', 'say "x"', 'two\nlines', '', null, ' x '].map((entry, at) => ({ entry, at })))
      await expect(
        { path: '/lines?select=entry,at&order=at', headers },
        response('entry,at\n"a,b",0\n"say ""x""",1\n"two\nlines",2\n"",3\n,4\n x ,5', {
          range: '0-5/*',
          'content-type': type,
        }),
      )
      await expect(
        { path: '/books?select=tags,size,t:title,id,id&id=eq.1', headers },
        response('tags,size,t,id,id\n"{red,""with, comma""}","(10,20)",The quick fox,1,1', { 'content-type': type }),
      )
      await expect({ path: '/lines?at=eq.99', headers }, response('entry,at\n', { range: '*/*', 'content-type': type }))
      await expect(
        { path: '/odd%20names?select="a,b","e\\"f"', headers },
        response('"a,b","e""f"\n1,quote', { 'content-type': type }),
      )
      await expect({ path: '/shelves?select=&id=eq.1', headers }, response('\n', { 'content-type': type }))
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
    check: gives({ path: one, headers: { accept: 'application/geo+json' } }, notAvailable('application/geo+json')),
  },
  {
    feature: 'plans: `application/vnd.pgrst.plan+json`',
    here: 'absent',
    note: 'also off by default in PostgREST',
    check: gives(
      {
        path: one,
        headers: { accept: 'application/vnd.pgrst.plan+json; for="application/json"; options=analyze|verbose' },
      },
      notAvailable('application/vnd.pgrst.plan+json; for="application/json"; options=analyze|verbose'),
    ),
  },
  {
    feature: 'custom media types',
    here: 'absent',
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
    here: 'differs',
    note: 'there is one schema, `public`',
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
          path: '/lines?columns=at',
          body: [{ at: 5 }],
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
    feature: '`timezone`',
    here: 'absent',
    check: async ({ expect }) => {
      await expect(
        { path: one, headers: { prefer: 'handling=strict, timezone=America/Lima' } },
        rejected(400, 'PGRST122', 'Invalid preferences given with handling=strict', {
          details: 'Invalid preferences: timezone=America/Lima',
        }),
      )
      await expect(
        { path: '/books?id=eq.1&select=added', headers: { prefer: 'timezone=America/Lima' } },
        rows([{ added: '2026-01-01T00:00:00+00:00' }]),
      )
    },
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
    feature: 'OPTIONS',
    here: 'differs',
    note: 'a preflight for browsers, without `Allow`',
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

/** Features that need the operator to allow rollbacks. */
export const rollbacks: Feature[] = [
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
