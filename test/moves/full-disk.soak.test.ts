// A move into a database whose disk has no room for the home: the database is in a tablespace on a small disk in memory. Needs
// root to mount the disk.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { serviceIdentity, setOwner } from '#local/process/unprivileged.ts'
import { openSmallDisk } from '#test/storage/support/cuttable-disk.ts'
import { query } from '#test/support/postgres.ts'
import {
  contentOf,
  createOwner,
  fill,
  first,
  move,
  remains,
  request,
  second,
  sql,
  startMovePlatform,
} from './support/platform.ts'

const megabyte = 1_000_000

t.test(
  'A move that finds no room in its target fails, and succeeds when there is room',
  { timeout: 300_000 },
  async (t) => {
    const disk = await openSmallDisk(t, 60 * megabyte)
    const identity = await serviceIdentity()
    await setOwner(disk, identity)
    const directory = join(disk, 'tablespace')
    await mkdir(directory)
    await setOwner(directory, identity)
    const platform = await startMovePlatform(t)
    await platform.startControlPlane()
    const ada = await createOwner(platform, 'ada')
    await fill(platform, ada)
    for (const database of [second, first]) t.match(await move(platform, ada, database), { state: 'succeeded' })
    const server = platform.postgres.url('postgres')
    await query(server, `create tablespace small location '${directory}'`)
    await query(server, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${second}'`)
    await query(server, `alter database ${second} set tablespace small`)
    await sql(
      ada.url,
      `create table much as select n, (select string_agg(md5(n || '.' || part), '') from generate_series(1, 60) part) as text
     from generate_series(1, 40000) n`,
    )
    const content = await contentOf(platform, first, ada)

    const operation = await move(platform, ada, second)
    t.match(operation, {
      state: 'failed',
      error:
        'The home could not be copied: the disk of the Postgres server has no space left for the rows of the table "much".',
    })
    t.same(await contentOf(platform, first, ada), content, 'with the same content')
    t.equal((await request(platform, ada, 'GET', '/rest/v1/notes')).status, 200, 'the tenant is served')
    t.same(await remains(platform, ada, second), [], 'and nothing of the move is left')

    await sql(ada.url, 'delete from much where n > 1000')
    t.match(await move(platform, ada, second), { state: 'succeeded', error: null })
    t.same(await sql(ada.url.replace(first, second), 'select count(*)::int as n from much'), [{ n: 1_000 }])
    t.same(await remains(platform, ada, first), [])
  },
)
