// Dumps of the control database: what leaves the host, what comes back, and what is rejected before anything is changed.
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { dumpFolder, dumpKeys, dumpParts } from '#control-plane/backups/control-database/dump-folder.ts'
import { dumpTime } from '#control-plane/backups/control-database/dump-id.ts'
import { findDump } from '#control-plane/backups/control-database/find-dump.ts'
import { dumpControlDatabase } from '#control-plane/backups/control-database/jobs-dumps.ts'
import { restoreDump, restoredFrom } from '#control-plane/backups/control-database/restore-dump.ts'
import { openTarget } from '#control-plane/backups/open-targets.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { migrate, readMigrations } from '#control-plane/platform/migrations.ts'
import { createSeal } from '#control-plane/platform/seal.ts'
import { startPlane } from '#test/support/control-plane/plane.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { filesBelow } from './support/tenants.ts'

const plane = await startPlane(t)
const root = await mkdtemp(join(tmpdir(), 'tenantry-dumps-'))
t.teardown(() => rm(root, { recursive: true, force: true }))
const disk = { name: 'disk', directory: join(root, 'disk') }
const offsite = { name: 'offsite', directory: join(root, 'offsite') }
await mkdir(disk.directory)
const installation = randomUUID()
const keys = dumpKeys(plane.seal)
const folder = dumpFolder(installation)
const signal = AbortSignal.timeout(120_000)
const migrations = await readMigrations()

const namesIn = async ({ directory }: { directory: string }) =>
  readdir(join(directory, folder)).catch((): string[] => [])

/** Returns the names of the dumps in a target, oldest first. */
const dumpsOf = async (target: { directory: string }) =>
  (await namesIn(target)).filter((name) => !name.includes('.')).sort()

/** Leads until `isDone`. */
async function lead(intervalMilliseconds: number, isDone: () => Promise<boolean>): Promise<Map<string, Date>> {
  const lost = new AbortController()
  const newest = new Map<string, Date>()
  const targets = await Promise.all([disk, offsite].map((config) => openTarget(config, folder, dumpParts)))
  const job = dumpControlDatabase({
    url: plane.url,
    installation,
    targets,
    key: keys[0],
    intervalMilliseconds,
    maxDumps: 4,
    clock: { ...systemClock, sleep: (_, stop) => systemClock.sleep(50, stop) },
    random: Math.random,
    log: plane.log,
    measure: (target, at) => void newest.set(target, at),
  })
  const ended = job({ epoch: 1n, lost: lost.signal })
  await until(isDone)
  lost.abort()
  await ended
  return newest
}

async function emptyDatabase(): Promise<string> {
  const name = `restored_${randomBytes(4).toString('hex')}`
  await plane.sql(`create database ${name}`)
  const url = new URL(plane.url)
  url.pathname = `/${name}`
  return url.href
}

const rowsSql = `select table_name as name, (xpath('/row/c/text()', query_to_xml(
    format('select md5(string_agg(t::text, '','' order by t::text)) as c from %I t', table_name), false, true, '')))[1]::text as hash
  from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'
    and table_name not in ('_prisma_migrations', 'changes') order by 1`

t.test('a leader dumps to each target that is available, and only when a dump is due', async (t) => {
  const tenant = await plane.addTenant({ name: 'known-by-name' })
  await plane.sql('insert into changes (kind, tenant_id, transaction_id) values ($1, $2, 1)', ['wanted', tenant])
  const newest = await lead(3_600_000, async () => (await dumpsOf(disk)).length === 1)
  const [first = ''] = await dumpsOf(disk)
  t.same(newest.get('disk'), dumpTime(first))
  t.notOk(newest.has('offsite'))
  t.match(plane.warnings, [{ details: { target: 'offsite' } }], 'the unavailable target is named')
  await mkdir(offsite.directory)
  await lead(3_600_000, async () => (await dumpsOf(offsite)).length === 1)
  t.same(await dumpsOf(disk), [first], 'another leader takes no second dump')
  const files = [...(await filesBelow(root)).values()]
  t.equal(files.length, 4)
  t.notOk(
    files.some((content) => content.includes('known-by-name')),
    'nothing leaves the host as plain text',
  )
})

t.test('a dump restores every row, also into a program with newer migrations', async (t) => {
  const url = await emptyDatabase()
  const dump = await findDump({ directory: disk.directory, others: [] }, undefined, keys, plane.log, signal)
  t.match(dump.manifest, { installation })
  const later = {
    name: '29990101000000_later',
    sql: 'alter table plans add column later integer; update plans set later = 7',
    checksum: 'later',
  }
  await restoreDump(url, dump, [...migrations, later], signal)
  t.same(
    await query(url, 'select distinct later from plans'),
    [{ later: 7 }],
    'a newer migration changes restored rows',
  )
  await query(url, 'alter table plans drop column later')
  t.same(await query(url, rowsSql), await query(plane.url, rowsSql))
  t.same(await query(url, 'select * from changes'), [], 'changes name transactions of the other server')
  t.same(
    await query(url, "select nextval('audit_log_seq_seq')"),
    await query(plane.url, "select nextval('audit_log_seq_seq')"),
    'sequences continue',
  )
  t.equal(await restoredFrom(url), dump.manifest.dump_id)
  t.equal(await restoredFrom(plane.url), undefined)
  await t.rejects(restoreDump(url, dump, migrations, signal), { code: 'FAILED', message: /1 tenants/ })
})

t.test('a dump of a newer version is rejected by name before anything is changed', async (t) => {
  const url = await emptyDatabase()
  await migrate(url, migrations.slice(0, 1))
  const dump = await findDump({ directory: disk.directory, others: [] }, undefined, keys, plane.log, signal)
  const [newest] = migrations.slice(-1)
  await t.rejects(restoreDump(url, dump, migrations.slice(0, -1), signal), {
    code: 'FAILED',
    message: new RegExp(`newer than this program.*${newest?.name ?? 'none'}`),
  })
  t.same(await query(url, 'select count(*)::int as count from _prisma_migrations'), [{ count: 1 }])
})

t.test('a damaged dump is named, and the next one is used; another master key finds none', async (t) => {
  const [old = ''] = await dumpsOf(disk)
  await lead(1, async () => (await dumpsOf(disk)).length > 1)
  const dumps = await dumpsOf(disk)
  for (const id of dumps.slice(1)) await truncate(join(disk.directory, folder, id, 'rows'), 50)
  plane.warnings.length = 0
  const found = await findDump({ directory: disk.directory, others: [] }, undefined, keys, plane.log, signal)
  t.equal(found.manifest.dump_id, old)
  t.same(
    plane.warnings.map(({ details }) => (details as { dump: string }).dump),
    dumps.slice(1).reverse(),
  )
  await t.rejects(
    findDump(
      { directory: disk.directory, others: [offsite] },
      undefined,
      dumpKeys(createSeal(randomBytes(32))),
      plane.log,
      signal,
    ),
    { code: 'INCOMPLETE', message: /No backup target has a dump .* this master key/ },
  )
})

t.test('only dumps of the wanted installation are found, and the others are named', async (t) => {
  const configs = { directory: disk.directory, others: [] }
  t.match((await findDump(configs, installation, keys, plane.log, signal)).manifest, { installation })
  const wanted = randomUUID()
  await t.rejects(findDump(configs, wanted, keys, plane.log, signal), {
    code: 'INCOMPLETE',
    message: new RegExp(
      `No backup target has a dump of the installation ${wanted} .* installations: ${installation}\\.$`,
    ),
  })
})

t.test('the newest dumps are kept, and what an interrupted dump left is removed', async (t) => {
  const left = randomUUID()
  await mkdir(join(disk.directory, folder, `${left}.making`))
  const before = await dumpsOf(disk)
  await lead(1, async () => {
    const names = await namesIn(disk)
    return !before.some((id) => names.includes(id)) && !names.includes(`${left}.making`)
  })
  t.ok((await dumpsOf(disk)).length <= 4)
})
