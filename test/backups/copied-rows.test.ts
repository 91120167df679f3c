// The rows of a home as COPY writes them: they pass through a connection unchanged, whatever their sizes are, and their hash
// depends on nothing but the rows.
import pg from 'pg'
import t from 'tap'
import { copyIn } from '#control-plane/backups/shared/copy-in.ts'
import { copyOut } from '#control-plane/backups/shared/copy-out.ts'
import { readSharedFacts } from '#control-plane/backups/shared/dump-home.ts'
import { RowHash } from '#control-plane/backups/shared/row-hash.ts'
import { startPostgres } from '#test/support/postgres.ts'

const server = await startPostgres()
const client = new pg.Client({ connectionString: server.url('homes') })
await client.connect()
t.teardown(async () => {
  await client.end()
  await server.stop()
})

const rows = async (name: string, columns: string[]) => {
  const blocks: Buffer[] = []
  for await (const block of copyOut(client, { name, columns })) blocks.push(Buffer.from(block))
  return blocks
}
const hashOf = (...blocks: string[]) => {
  const hash = new RowHash()
  for (const block of blocks) hash.update(Buffer.from(block))
  return hash.digest()
}

t.test('rows of all sizes are the same after they were copied out and in', async (t) => {
  await client.query(
    `create table sizes as select n, repeat('x', (n * 7919) % 3000) || E'\\n\\t' as text from generate_series(1, 3000) n
     union all select 0, repeat(md5('y'), 100000);
     create table copies (n int, text text)`,
  )
  const blocks = await rows('sizes', ['n', 'text'])
  t.ok(blocks.length > 5)
  t.ok(
    blocks.every((block) => block.at(-1) === 10),
    'a block ends with a row',
  )
  await copyIn(
    client,
    'copy copies from stdin',
    (async function* () {
      yield* blocks
    })(),
  )
  t.same((await client.query('select * from sizes except all select * from copies')).rows, [])
  t.same((await client.query('select count(*)::int as count from copies')).rows, [{ count: 3001 }])
})

t.test('an empty table has no rows', async (t) => {
  await client.query('create table nothing (n int)')
  t.same(await rows('nothing', ['n']), [])
})

t.test('after an error of the server, the connection can be used', async (t) => {
  await t.rejects(rows('sizes', ['missing']), { code: '42703' })
  t.same((await client.query('select 1 as one')).rows, [{ one: 1 }])
  await t.rejects(
    copyIn(
      client,
      'copy copies from stdin',
      (async function* () {
        yield Buffer.from('no number\ttext\n')
      })(),
    ),
    { code: '22P02' },
  )
  t.same((await client.query('select 1 as one')).rows, [{ one: 1 }])
})

t.test('the hash depends on the rows only, not on their order and their blocks', async (t) => {
  const { rows, hash } = hashOf('1\ta\n2\tb\n3\tc\n')
  t.equal(rows, '3')
  t.match(hash, /^[0-9a-f]{64}$/)
  t.same(hashOf('3\tc\n', '1\ta\n2\tb\n'), { rows, hash })
  for (const others of ['1\ta\n2\tb\n', '1\ta\n2\tb\n3\td\n', '1\ta\n2\tb\n3\tc\n3\tc\n', '1\ta\n2\tb\n\tc\n'])
    t.not(hashOf(others).hash, hash, JSON.stringify(others))
  t.throws(() => hashOf('1\ta'), /no end/)
})

t.test('the figures of both formats are those that backups contain', async (t) => {
  await client.query(`create table facts as select n, 'row "' || n || '"' as text from generate_series(1, 3) n`)
  const objects = { entries: [], tables: [{ name: 'facts', columns: ['n', 'text'], isService: false }], sequences: [] }
  const tablesOf = async (format: 'frames' | 'frames-2') => (await readSharedFacts(client, objects, format)).tables
  // Releases that wrote the format "frames" have computed this hash.
  t.same(await tablesOf('frames'), [{ name: 'facts', rows: '3', hash: '1367201857384618404.1293578575309629366' }])
  t.same(await tablesOf('frames-2'), [{ name: 'facts', ...hashOf('1\trow "1"\n2\trow "2"\n3\trow "3"\n') }])
})
