// Pages of a folder by offset while the bucket changes: they always equal a plain OFFSET, whatever positions earlier
// pages recorded.
import fc from 'fast-check'
import pg from 'pg'
import t, { type Test } from 'tap'
import { toWire } from '#tenant-runtime/database/statement.ts'
import { folderStatement } from '#tenant-runtime/storage/objects/folder-statement.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { effort, seed } from '#test/support/effort.ts'

interface Page {
  bucket: 'files' | 'others'
  prefix: '' | 'in'
  order: 'asc' | 'desc'
  search: '' | '7'
  offset: number
  limit: number
}

/** Numbers of folders and objects: more than lie between two recorded positions. */
const [folders, objects] = [1_050, 2_200]
const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

function expected(paths: Iterable<string>, { prefix, order, search, offset, limit }: Page): string[] {
  const folder = prefix === '' ? '' : `${prefix}/`
  const below = [...paths].filter((path) => path.startsWith(folder)).map((path) => path.slice(folder.length))
  const sorted = (names: string[]) =>
    names.filter((name) => name.includes(search)).sort((a, b) => (order === 'asc' ? 1 : -1) * byBytes(a, b))
  const inner = new Set(below.filter((rest) => rest.includes('/')).map((rest) => rest.slice(0, rest.indexOf('/'))))
  return [
    ...sorted([...inner]).map((name) => `${name}/`),
    ...sorted(below.filter((rest) => !rest.includes('/'))),
  ].slice(offset, offset + limit)
}

async function start(t: Test) {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  for (const name of ['files', 'others'])
    await tenant.request('POST', '/storage/v1/bucket', { as: 'ada', body: { name, policy: 'public' } })
  const insert = (bucket: string, paths: string[]) =>
    tenant.rows(
      `insert into storage_objects (bucket_id, path, blob_id, size, content_type, etag)
     select b.id, p, gen_random_uuid(), 1, 'text/plain', 'x'
     from storage_buckets b, jsonb_array_elements_text($2::jsonb) p where b.name = $1`,
      [bucket, JSON.stringify(paths)],
    )
  // Requests run as the service, because a user's tokens differ by the second, and each token is a separate caller.
  const list = async ({ bucket, prefix, order, search, offset, limit }: Page, as = 'service') => {
    const response = await tenant.request('POST', `/storage/v1/object/list/${bucket}`, {
      as,
      body: { prefix, search, limit, offset, sortBy: { column: 'name', order } },
    })
    if (response.status !== 200) throw new Error(response.text)
    return response.list().map(({ name, id }) => (id === null ? `${String(name)}/` : String(name)))
  }
  return { tenant, insert, list }
}

t.test('A page at any offset is correct while the bucket changes between and during requests', async (t) => {
  const { tenant, insert, list } = await start(t)
  const first = [
    ...Array.from({ length: folders }, (_, n) => `in/f${n}/x`),
    ...Array.from({ length: objects }, (_, n) => `in/${n}.txt`),
    'a',
    'b/c',
    'z',
  ]
  const page: fc.Arbitrary<Page> = fc.record({
    bucket: fc.constantFrom('files', 'files', 'files', 'others'),
    prefix: fc.constantFrom('in', 'in', 'in', ''),
    order: fc.constantFrom('asc', 'asc', 'desc'),
    search: fc.constantFrom('', '', '7'),
    offset: fc.oneof(fc.nat(folders + objects + 10), fc.constantFrom(0, 100, 200, 300, 2_000)),
    limit: fc.constantFrom(1, 100, 100, 100, 1_000),
  })
  const change = fc.record({
    what: fc.constantFrom('add', 'addFolder', 'remove', 'rename', 'moveOut', 'moveIn', 'overwrite'),
    n: fc.nat(),
  })
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ page }) },
    { weight: 2, arbitrary: fc.record({ change }) },
    { weight: 2, arbitrary: fc.record({ page, change }) },
  )
  let fresh = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
      await tenant.rows('delete from storage_objects')
      await insert('files', first)
      let now = { files: new Set(first), others: new Set<string>() }
      const apply = ({ what, n }: { what: string; n: number }) => {
        const after = { files: new Set(now.files), others: new Set(now.others) }
        const pick = (from: Set<string>) => [...from][n % Math.max(1, from.size)] ?? ''
        const location = (bucket: string, path: string, to: string, toPath: string) =>
          tenant.rows(
            `update storage_objects set bucket_id = (select id from storage_buckets where name = $3), path = $4
              where bucket_id = (select id from storage_buckets where name = $1) and path = $2`,
            [bucket, path, to, toPath],
          )
        const move = (from: 'files' | 'others', to: 'files' | 'others') => {
          const [path, toPath] = [pick(now[from]), `in/${n % 3_000}-${fresh++}`]
          if (path === '') return async () => []
          after[from].delete(path)
          after[to].add(toPath)
          return () => location(from, path, to, toPath)
        }
        const add = (path: string) => {
          after.files.add(path)
          return () => insert('files', [path])
        }
        const path = pick(now.files)
        const run =
          what === 'add'
            ? add(`in/${n % 3_000}-${fresh++}`)
            : what === 'addFolder'
              ? add(`in/f${n % 3_000}-${fresh++}/x`)
              : what === 'rename'
                ? move('files', 'files')
                : what === 'moveOut'
                  ? move('files', 'others')
                  : what === 'moveIn'
                    ? move('others', 'files')
                    : what === 'overwrite'
                      ? () =>
                          tenant.rows('update storage_objects set blob_id = gen_random_uuid() where path = $1', [path])
                      : () =>
                          tenant.rows(
                            `delete from storage_objects
                              where path = $1 and bucket_id = (select id from storage_buckets where name = 'files')`,
                            [path],
                          )
        if (what === 'remove') after.files.delete(path)
        return { run, after }
      }
      for (const step of steps) {
        const before = now
        const applied = 'change' in step ? apply(step.change) : undefined
        const [shown] = await Promise.all(['page' in step ? list(step.page) : undefined, applied?.run()])
        now = applied?.after ?? now
        if (shown === undefined || !('page' in step)) continue
        const wanted = [before, now].map((state) => JSON.stringify(expected(state[step.page.bucket], step.page)))
        if (!wanted.includes(JSON.stringify(shown)))
          throw new Error(`${JSON.stringify(step)}: ${JSON.stringify(shown)} instead of ${wanted.join(' or ')}`)
      }
    }),
    // Shrinking a counterexample would take minutes.
    { seed, numRuns: effort({ small: 8, full: 400 }), endOnFailure: true },
  )
  t.pass()
})

t.test('A page begins at the end of the page before it and does not scan what that page showed', async (t) => {
  const { tenant, insert, list } = await start(t)
  await insert('files', ['a', 'b', 'c', 'd', 'e'])
  const page = { bucket: 'files', prefix: '', order: 'asc', search: '', limit: 2 } as const
  t.same(await list({ ...page, offset: 0 }), ['a', 'b'])
  // This change bypasses the triggers, so only a count from the start detects it.
  await tenant.rows(
    "do $$ begin set local session_replication_role = replica; delete from storage_objects where path = 'a'; end $$",
  )
  t.same(await list({ ...page, offset: 2 }), ['c', 'd'])
  t.same(
    await list({ ...page, offset: 2 }, 'ben'),
    ['d', 'e'],
    "another caller does not use the first caller's positions",
  )
  await insert('files', ['f'])
  t.same(await list({ ...page, offset: 2 }), ['d', 'e'])
})

t.test('Every change of the contents of a bucket increments its version, and that of no other bucket', async (t) => {
  const { tenant, insert } = await start(t)
  const contents = async () => {
    const rows = await tenant.rows(
      'select name, contents::text from storage_bucket_counters join storage_buckets on id = bucket_id order by name',
    )
    return Object.fromEntries(rows.map(({ name, contents }) => [String(name), String(contents)]))
  }
  await insert('files', ['a', 'b'])
  await insert('others', ['a'])
  const into = "bucket_id = (select id from storage_buckets where name = 'others')"
  const from = "bucket_id = (select id from storage_buckets where name = 'files')"
  for (const [what, change, changed] of [
    ['an insert', () => insert('files', ['c', 'd', 'e']), ['files']],
    ['a rename', () => tenant.rows(`update storage_objects set path = 'x' where ${from} and path = 'a'`), ['files']],
    [
      'an overwrite',
      () => tenant.rows(`update storage_objects set blob_id = gen_random_uuid() where ${from} and path = 'b'`),
      ['files'],
    ],
    [
      'a new date',
      () => tenant.rows(`update storage_objects set updated_at = now() where ${from} and path = 'b'`),
      ['files'],
    ],
    [
      'a move',
      () => tenant.rows(`update storage_objects set ${into} where ${from} and path = 'c'`),
      ['files', 'others'],
    ],
    [
      'an exchange',
      () =>
        tenant.rows(
          `update storage_objects
            set bucket_id = (select id from storage_buckets b where b.id <> bucket_id and b.name <> 'system'),
              path = path || '2'`,
        ),
      ['files', 'others'],
    ],
    ['a delete', () => tenant.rows(`delete from storage_objects where ${into} and path = 'x2'`), ['others']],
    ['an update without a change', () => tenant.rows("delete from storage_objects where path = 'nothing'"), []],
    ['an update of the bucket itself', () => tenant.rows("update storage_buckets set policy = 'private'"), []],
  ] as const) {
    const before = await contents()
    await change()
    const after = await contents()
    t.same(
      Object.keys(after).filter((name) => after[name] !== before[name]),
      changed,
      what,
    )
  }
})

t.test(
  'A caller who loses access to the bucket receives nothing, and the previous pages after access returns',
  async (t) => {
    const { tenant, insert, list } = await start(t)
    await insert('files', ['a', 'b', 'c', 'd', 'e', 'f/x'])
    const page = { bucket: 'files', prefix: '', order: 'asc', search: '', limit: 2 } as const
    t.same(await list({ ...page, offset: 0 }, 'ben'), ['f/', 'a'])
    const [row] = await tenant.rows(
      "select id::text, contents::text from storage_buckets join storage_bucket_counters on id = bucket_id where name = 'files'",
    )
    const client = new pg.Client({ connectionString: tenant.home.url })
    await client.connect()
    t.teardown(() => client.end())
    const rowsOf = async (user: string) => {
      const { text, values } = folderStatement(
        String(row?.['id']),
        { folder: '', search: '', column: 'name', order: 'asc', limit: 2, offset: 2 },
        { contents: String(row?.['contents']), position: { passed: 2, key: 'a', isFolder: false } },
      )
      await client.query('begin')
      await client.query(
        "select set_config('app.tenant_id', $1, true), set_config('app.role', 'authenticated', true), set_config('app.user_id', $2, true)",
        [tenant.id, user],
      )
      const { rows } = await client.query<{ key: string | null }>(text, values.map(toWire))
      await client.query('commit')
      return rows.map(({ key }) => key)
    }
    t.same(await rowsOf('ben'), [null, 'a', 'b', 'c'])
    await tenant.request('PATCH', '/storage/v1/bucket/files', { as: 'ada', body: { policy: 'private' } })
    t.same(await rowsOf('ben'), [])
    t.same(await rowsOf('ada'), [null, 'a', 'b', 'c'])
    t.equal(
      (await tenant.request('POST', '/storage/v1/object/list/files', { as: 'ben', body: { limit: 2, offset: 2 } }))
        .status,
      404,
    )
    await tenant.request('PATCH', '/storage/v1/bucket/files', { as: 'ada', body: { policy: 'public' } })
    t.same(await list({ ...page, offset: 2 }, 'ben'), ['b', 'c'])
  },
)
