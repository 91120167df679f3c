// Compares listing by cursor with a plain model: any keys, any prefix, either order, with and without folders, page by
// page.
import fc from 'fast-check'
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { effort, seed } from '#test/support/effort.ts'

interface Page {
  hasNext: boolean
  nextCursor?: string
  folders: { name: string; key: string }[]
  objects: { name: string; key: string; id: string; metadata: { size: number } }[]
}

/** Returns the expected listing; `f` and `o` before the key distinguish folders from objects. */
function expected(paths: readonly string[], prefix: string, asFolders: boolean, order: 'asc' | 'desc'): string[] {
  const sorted = [...paths]
    .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    .filter((path) => path.startsWith(prefix))
  const shown = sorted.map((path) => {
    const slash = asFolders ? path.indexOf('/', prefix.length) : -1
    return slash < 0 ? `o${path}` : `f${path.slice(0, slash)}`
  })
  const once = shown.filter((key, index) => shown.indexOf(key) === index)
  return order === 'asc' ? once : once.reverse()
}

t.test('list-v2', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const list = async (bucket: string, body: object, caller = 'ada') =>
    tenant.request('POST', `/storage/v1/object/list-v2/${bucket}`, { as: caller, body })
  await tenant.request('POST', '/storage/v1/bucket', { as: 'ada', body: { name: 'files' } })
  const fill = async (paths: readonly string[]) => {
    await tenant.rows('delete from storage_objects')
    await tenant.rows(
      `insert into storage_objects (bucket_id, path, blob_id, size, content_type, etag)
       select b.id, p, gen_random_uuid(), 1, 'text/plain', 'x'
       from storage_buckets b, jsonb_array_elements_text($1::jsonb) p where b.name = 'files'`,
      [JSON.stringify(paths)],
    )
  }

  t.test('A listing by cursor equals the model, in pages of any size', async (t) => {
    const segment = fc
      .string({
        unit: fc.constantFrom('a', 'b', '0', '.', ' ', '!', 'é', '~', '%', '_', '\u{10FFFF}'),
        minLength: 1,
        maxLength: 3,
      })
      .filter((text) => text !== '.' && text !== '..')
    const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => segments.join('/'))
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(path, { maxLength: 40 }),
        fc.nat(),
        fc.nat(8),
        fc.boolean(),
        fc.constantFrom('asc' as const, 'desc' as const),
        fc.integer({ min: 1, max: 50 }),
        async (paths, which, cut, asFolders, order, limit) => {
          await fill(paths)
          const prefix = Array.from(paths[which % Math.max(1, paths.length)] ?? '')
            .slice(0, cut)
            .join('')
          const seen: string[] = []
          let cursor: string | undefined
          for (let pages = 0; ; pages++) {
            const response = await list('files', {
              prefix,
              with_delimiter: asFolders,
              sortBy: { column: 'name', order },
              limit,
              ...(cursor === undefined ? {} : { cursor }),
            })
            if (response.status !== 200 || pages > 50) throw new Error(response.text)
            const page = response.json() as unknown as Page
            const shown = [...page.folders.map(({ key }) => `f${key}`), ...page.objects.map(({ key }) => `o${key}`)]
            if (shown.length > limit || page.hasNext !== (page.nextCursor !== undefined)) throw new Error(response.text)
            const wanted = expected(paths, prefix, asFolders, order).slice(seen.length, seen.length + shown.length)
            if (JSON.stringify([...shown].sort()) !== JSON.stringify([...wanted].sort()))
              throw new Error(`${JSON.stringify(shown)} instead of ${JSON.stringify(wanted)}`)
            seen.push(...wanted)
            cursor = page.nextCursor
            if (cursor === undefined) break
          }
          return seen.length === expected(paths, prefix, asFolders, order).length
        },
      ),
      { seed, numRuns: effort({ small: 60, full: 3_000 }) },
    )
    t.pass()
  })

  t.test('A listing shows keys with the highest code points, however many', async (t) => {
    const last = '\u{10FFFF}'
    const paths = [`a/${last.repeat(250)}/b`, last.repeat(3), last.repeat(256)]
    await fill(paths)
    for (const order of ['asc', 'desc'] as const) {
      for (const prefix of ['', last, last.repeat(3)]) {
        const { objects } = (
          await list('files', { prefix, sortBy: { column: 'name', order } })
        ).json() as unknown as Page
        t.same(
          objects.map(({ key }) => `o${key}`),
          expected(paths, prefix, false, order),
        )
      }
    }
  })

  t.test('The response has the form that clients read', async (t) => {
    await fill(['a/b/c.txt', 'a/d.txt', 'e.txt'])
    const { data, error } = await tenant
      .client('ada')
      .storage.from('files')
      .listV2({ prefix: 'a/', with_delimiter: true })
    t.equal(error, null)
    t.match(data, {
      hasNext: false,
      folders: [{ name: 'a/b/', key: 'a/b' }],
      objects: [{ name: 'a/d.txt', key: 'a/d.txt', id: String, metadata: { size: 1, mimetype: 'text/plain' } }],
    })
  })

  t.test('The rules of all reads apply to listing, and errors state what is wrong', async (t) => {
    t.match((await list('files', {}, 'ben')).json(), { statusCode: '404', code: 'NoSuchBucket' })
    for (const body of [
      { cursor: '!' },
      { cursor: 'eA' },
      { prefix: 'z', cursor: Buffer.from('oa').toString('base64url') },
      { limit: 0 },
      { limit: 1001 },
      { sortBy: { column: 'size' } },
      { prefix: 1 },
    ]) {
      t.equal((await list('files', body)).status, 400, JSON.stringify(body))
    }
  })

  t.test('A page costs what it shows, whatever is below the folders', async (t) => {
    await tenant.rows(
      `insert into storage_objects (bucket_id, path, blob_id, size, content_type, etag)
       select b.id, 'deep/' || (n % 5) || '/' || n, gen_random_uuid(), 1, 'text/plain', 'x'
       from storage_buckets b, generate_series(1, 5000) n where b.name = 'files'`,
    )
    await tenant.rows('analyze storage_objects')
    const before = await tenant.rows(
      "select idx_tup_fetch::int as n, seq_scan::int as scans from pg_stat_user_tables where relid = 'storage_objects'::regclass",
    )
    const page = (await list('files', { prefix: 'deep/', with_delimiter: true })).json() as unknown as Page
    t.same(
      page.folders.map(({ key }) => key),
      ['deep/0', 'deep/1', 'deep/2', 'deep/3', 'deep/4'],
    )
    // A session reports its statistics when it ends a transaction, at most once a second.
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    await list('files', { prefix: 'deep/', limit: 1 })
    const after = await tenant.rows(
      "select idx_tup_fetch::int as n, seq_scan::int as scans from pg_stat_user_tables where relid = 'storage_objects'::regclass",
    )
    const fetched = Number(after[0]?.['n']) - Number(before[0]?.['n'])
    t.ok(fetched > 0 && fetched < 100, `${fetched} rows were read`)
    t.equal(after[0]?.['scans'], before[0]?.['scans'], 'no sequential scan')
  })

  t.test('A listing by date shows folders first, then objects, in pages of any size', async (t) => {
    const paths = ['a', 'b', 'c', 'd', 'e', 'f/1', 'f/2', 'g/1', 'g/h/1']
    await fill(paths)
    // Two objects have the same date.
    await tenant.rows(
      `update storage_objects set created_at = '2026-01-01'::timestamptz + d * interval '1 day',
         updated_at = '2026-02-01'::timestamptz - d * interval '1 day'
       from (values ('a', 3), ('b', 1), ('c', 2), ('d', 2), ('e', 4)) v (p, d) where path = v.p`,
    )
    const wanted = {
      'created_at asc': ['f', 'g', 'b', 'c', 'd', 'a', 'e'],
      'created_at desc': ['g', 'f', 'e', 'a', 'd', 'c', 'b'],
      'updated_at asc': ['f', 'g', 'e', 'a', 'c', 'd', 'b'],
      'updated_at desc': ['g', 'f', 'b', 'd', 'c', 'a', 'e'],
    }
    for (const [sort, keys] of Object.entries(wanted)) {
      const [column, order] = sort.split(' ')
      for (const limit of [1, 3, 100]) {
        const seen: string[] = []
        let cursor: string | undefined
        do {
          const page = (
            await list('files', { with_delimiter: true, limit, sortBy: { column, order }, ...(cursor && { cursor }) })
          ).json() as unknown as Page
          seen.push(...[...page.folders, ...page.objects].map(({ key }) => key))
          cursor = page.nextCursor
        } while (cursor !== undefined && seen.length < 20)
        t.same(seen, keys, `${sort}, ${limit} a page`)
      }
    }
    const inside = (await list('files', { prefix: 'g', sortBy: { column: 'created_at' } })).json() as unknown as Page
    t.same(inside.objects.map(({ key }) => key).sort(), ['g/1', 'g/h/1'], 'without folders, all keys with the prefix')
    const first = (
      await list('files', { limit: 1, sortBy: { column: 'created_at', order: 'asc' } })
    ).json() as unknown as Page
    for (const sortBy of [{ column: 'updated_at' }, { column: 'created_at', order: 'desc' }, { column: 'name' }])
      t.equal((await list('files', { cursor: first.nextCursor, sortBy })).status, 400, 'a cursor of another order')
  })
})
