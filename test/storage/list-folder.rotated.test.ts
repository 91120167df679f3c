// Compares listing a folder by offset with a plain model: any paths, folder, search, order and page.
import fc from 'fast-check'
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { effort, seed } from '#test/support/effort.ts'

interface Shown {
  name: string
  id: string | null
}

interface Query {
  prefix: string
  search: string
  column: 'name' | 'created_at'
  order: 'asc' | 'desc'
}

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

/** Folders end with a slash. The path at index `n` of the list was created `n` seconds after the first. */
function expected(paths: readonly string[], { prefix, search, column, order }: Query): string[] {
  const folder = prefix === '' ? '' : `${prefix}/`
  const below = paths
    .filter((path) => path.startsWith(folder))
    .map((path) => ({ rest: path.slice(folder.length), made: paths.indexOf(path) }))
  const matches = (name: string) => name.toLowerCase().includes(search.toLowerCase())
  const folders = [
    ...new Set(below.filter(({ rest }) => rest.includes('/')).map(({ rest }) => rest.slice(0, rest.indexOf('/')))),
  ]
    .filter(matches)
    .sort(byBytes)
  const objects = below
    .filter(({ rest }) => !rest.includes('/') && matches(rest))
    .sort((a, b) => (column === 'name' ? byBytes(a.rest, b.rest) : a.made - b.made))
  if (order === 'desc') objects.reverse()
  if (order === 'desc' && column === 'name') folders.reverse()
  return [...folders.map((name) => `${name}/`), ...objects.map(({ rest }) => rest)]
}

t.test('A listing by offset equals the model, page by page', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  await tenant.request('POST', '/storage/v1/bucket', { as: 'ada', body: { name: 'files' } })
  const segment = fc
    .string({
      unit: fc.constantFrom('a', 'B', '0', '.', ' ', '!', 'é', '~', '%', '\u{10FFFF}'),
      minLength: 1,
      maxLength: 3,
    })
    .filter((text) => text !== '.' && text !== '..')
  const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => segments.join('/'))
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(path, { maxLength: 40 }),
      fc.nat(),
      fc.nat(2),
      fc.constantFrom('', 'a', 'b', ' ', '0.'),
      fc.constantFrom('name' as const, 'created_at' as const),
      fc.constantFrom('asc' as const, 'desc' as const),
      fc.integer({ min: 1, max: 20 }),
      async (paths, which, depth, search, column, order, limit) => {
        await tenant.rows('delete from storage_objects')
        await tenant.rows(
          `insert into storage_objects (bucket_id, path, blob_id, size, content_type, etag, created_at)
           select b.id, p, gen_random_uuid(), 1, 'text/plain', 'x', now() + n * interval '1 second'
           from storage_buckets b, jsonb_array_elements_text($1::jsonb) with ordinality as l (p, n) where b.name = 'files'`,
          [JSON.stringify(paths)],
        )
        const prefix = (paths[which % Math.max(1, paths.length)] ?? '').split('/').slice(0, depth).join('/')
        const query: Query = { prefix, search, column, order }
        const wanted = expected(paths, query)
        for (let offset = 0; offset <= wanted.length; offset += limit) {
          const response = await tenant.request('POST', '/storage/v1/object/list/files', {
            as: 'ada',
            body: { prefix, search, limit, offset, sortBy: { column, order } },
          })
          const shown = (response.list() as unknown as Shown[]).map(({ name, id }) => (id === null ? `${name}/` : name))
          const page = wanted.slice(offset, offset + limit)
          if (JSON.stringify(shown) !== JSON.stringify(page))
            throw new Error(`${JSON.stringify(shown)} instead of ${JSON.stringify(page)}`)
        }
      },
    ),
    { seed, numRuns: effort({ small: 60, full: 3_000 }) },
  )
  t.pass()
})
