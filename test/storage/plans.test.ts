// What Postgres reads for a page of a large bucket, as a user under the policies: it uses an index, and reads no more
// than the page shows.
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import t, { type Test } from 'tap'
import { toWire, type Statement } from '#tenant-runtime/database/statement.ts'
import { bucketStatement } from '#tenant-runtime/storage/buckets/bucket-store.ts'
import { folderStatement, type FolderQuery } from '#tenant-runtime/storage/objects/folder-statement.ts'
import { keysStatement } from '#tenant-runtime/storage/objects/list-keys.ts'
import { objectStatement } from '#tenant-runtime/storage/objects/object-store.ts'
import { effort } from '#test/support/effort.ts'
import { startRuntime } from '#test/support/runtime.ts'

interface Node {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Heap Fetches'?: number
  Plans?: Node[]
}

interface Plan {
  /** Kinds of scans of the objects' table. */
  scans: string[]
  /** Number of index entries that were read. */
  entries: number
  /** Number of table rows that were read. */
  rows: number
  shown: number
  milliseconds: number
}

const objects = effort({ small: 100_000, full: 1_000_000 })
const flat = objects / 2

t.test('Queries in a bucket of many objects use indexes', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  await tenant.request('POST', '/storage/v1/bucket', { as: 'ada', body: { name: 'many', policy: 'public' } })
  const [bucket] = await tenant.rows("select id::text from storage_buckets where name = 'many'")
  const bucketId = String(bucket?.['id'])
  // Triggers are disabled, because they would count each row separately.
  await tenant.rows(
    `do $$ begin
       set local session_replication_role = replica;
       insert into storage_objects (bucket_id, path, blob_id, size, content_type, etag)
         select '${bucketId}', case when n <= ${flat} then 'photos/' || n || '.jpg' else 'years/' || (n % 1000) || '/' || n || '.txt' end,
           gen_random_uuid(), 1, 'text/plain', 'x'
         from generate_series(1, ${objects}) n;
     end $$`,
  )
  await tenant.rows('vacuum analyze storage_objects')
  const client = new pg.Client({ connectionString: tenant.home.url })
  await client.connect()
  t.teardown(() => client.end())

  const explain = async (userId: string, { text, values }: Statement): Promise<Plan> => {
    await client.query('begin')
    try {
      await client.query(
        "select set_config('app.tenant_id', $1, true), set_config('app.role', 'authenticated', true), set_config('app.user_id', $2, true)",
        [tenant.id, userId],
      )
      const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Node; 'Execution Time': number }[] }>(
        `explain (analyze, format json) ${text}`,
        values.map(toWire),
      )
      const [top] = rows[0]?.['QUERY PLAN'] ?? []
      if (top === undefined) throw new Error('no plan')
      const nodes = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodes)]
      const scans = nodes(top.Plan).filter((node) => node['Relation Name'] === 'storage_objects')
      // EXPLAIN rounds averages over many loops.
      const entriesOf = (node: Node) =>
        (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']
      const sum = (part: (node: Node) => number) => scans.reduce((all, node) => all + part(node), 0)
      return {
        scans: [...new Set(scans.map((node) => node['Node Type']))].sort(),
        entries: Math.round(sum(entriesOf)),
        rows: Math.round(
          sum((node) => (node['Node Type'] === 'Index Only Scan' ? (node['Heap Fetches'] ?? 0) : entriesOf(node))),
        ),
        shown: top.Plan['Actual Rows'],
        milliseconds: top['Execution Time'],
      }
    } finally {
      await client.query('rollback')
    }
  }
  const byIndex = ['Index Only Scan', 'Index Scan']
  const page: FolderQuery = { folder: 'photos/', search: '', column: 'name', order: 'asc', limit: 100, offset: 0 }

  t.test('No listing reads the metadata of objects, which it does not show', async (t) => {
    const keys = keysStatement(bucketId, { prefix: '', after: undefined, order: 'asc', asFolders: true, limit: 100 })
    for (const { text } of [folderStatement(bucketId, page), keys]) t.notMatch(text, /o\.metadata/)
  })

  for (const [caller, userId] of [
    ['its owner', 'ada'],
    ['another user', 'ben'],
  ] as const) {
    const check = async (
      t: Test,
      what: string,
      statement: Statement,
      max: { shown: number; rows: number; entries: number },
    ) => {
      const plan = await explain(userId, statement)
      t.comment(`${what}: ${JSON.stringify(plan)}`)
      t.equal(plan.shown, max.shown, `${what}: shows the expected rows`)
      t.ok(
        plan.scans.every((scan) => byIndex.includes(scan)),
        `${what}: by indexes alone, ${plan.scans.join(', ')}`,
      )
      t.ok(plan.rows <= max.rows, `${what}: ${plan.rows} rows are read, at most ${max.rows}`)
      t.ok(plan.entries <= max.entries, `${what}: ${plan.entries} index entries are read, at most ${max.entries}`)
    }

    t.test(`A read of one object or bucket by ${caller} reads one row`, async (t) => {
      await check(t, 'an object', objectStatement('many', 'photos/777.jpg'), { shown: 1, rows: 1, entries: 1 })
      await check(t, 'a bucket', bucketStatement('many'), { shown: 1, rows: 0, entries: 0 })
    })

    t.test(
      `A listing by offset for ${caller} reads only the rows of the page, and skips the others by index`,
      async (t) => {
        // The result contains, in addition to the page, the version of the bucket's contents and the recorded
        // positions.
        await check(t, 'first page', folderStatement(bucketId, page), { shown: 102, rows: 100, entries: 100 })
        await check(t, 'from behind', folderStatement(bucketId, { ...page, order: 'desc' }), {
          shown: 102,
          rows: 100,
          entries: 100,
        })
        await check(t, 'a later page', folderStatement(bucketId, { ...page, offset: 5_000 }), {
          shown: 107,
          rows: 100,
          entries: 5_100,
        })
        await check(t, 'by date', folderStatement(bucketId, { ...page, column: 'created_at', order: 'desc' }), {
          shown: 102,
          rows: 100,
          entries: flat + 100,
        })
        await check(t, 'a search', folderStatement(bucketId, { ...page, search: '77.JPG' }), {
          shown: 102,
          rows: 100,
          entries: flat + 100,
        })
        await check(t, 'folders', folderStatement(bucketId, { ...page, folder: 'years/' }), {
          shown: 101,
          rows: 0,
          entries: 100,
        })
        await check(t, 'the root', folderStatement(bucketId, { ...page, folder: '' }), {
          shown: 4,
          rows: 0,
          entries: 2,
        })
      },
    )

    t.test(
      `A listing for ${caller} skips nothing before a known position, unless the bucket has changed`,
      async (t) => {
        const [known] = await tenant.rows(
          `select path, contents::text from storage_objects join storage_bucket_counters using (bucket_id)
          where path like 'photos/%' order by path offset 39999 limit 1`,
        )
        const position = { passed: 40_000, key: String(known?.['path']), isFolder: false }
        const contents = String(known?.['contents'])
        await check(
          t,
          'the next page',
          folderStatement(bucketId, { ...page, offset: 40_000 }, { position, contents }),
          {
            shown: 102,
            rows: 100,
            entries: 100,
          },
        )
        await check(
          t,
          'a page behind',
          folderStatement(bucketId, { ...page, offset: 40_500 }, { position, contents }),
          {
            shown: 103,
            rows: 100,
            entries: 600,
          },
        )
        await check(
          t,
          'changed',
          folderStatement(bucketId, { ...page, offset: 40_500 }, { position, contents: randomUUID() }),
          { shown: 143, rows: 100, entries: 40_600 },
        )
      },
    )

    t.test(`A listing by cursor for ${caller} reads little more than the rows of the page`, async (t) => {
      const keys = { prefix: 'photos/', after: undefined, order: 'asc', asFolders: true, limit: 100 } as const
      const after = (key: string) => Buffer.from(`o${key}`).toString('base64url')
      await check(t, 'first page', keysStatement(bucketId, keys), { shown: 101, rows: 101, entries: 101 })
      await check(t, 'a later page', keysStatement(bucketId, { ...keys, after: after('photos/5.jpg') }), {
        shown: 101,
        rows: 101,
        entries: 101,
      })
      await check(t, 'folders', keysStatement(bucketId, { ...keys, prefix: 'years/' }), {
        shown: 101,
        rows: 109,
        entries: 109,
      })
    })
  }
})
