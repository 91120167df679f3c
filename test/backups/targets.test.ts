// Several backup targets: complete backups are copied to each target that lacks them, each copy is compared before it counts,
// a damaged copy is never spread, and an unavailable target stops neither a survey nor a removal in the others.
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { unavailableTarget } from '#control-plane/backups/backup-error.ts'
import type { BackupTarget } from '#control-plane/backups/backup-target.ts'
import { createDirectoryTarget } from '#control-plane/backups/directory-target.ts'
import { runBackups, type BackupJobDeps } from '#control-plane/backups/jobs.ts'
import { openGoodCopy } from '#control-plane/backups/good-copy.ts'
import { createTargets } from '#control-plane/backups/target-set.ts'
import { readTargets } from '#control-plane/backups/targets-config.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { jobOf, leader, log, signal, write } from './support/targets.ts'
import { filesBelow } from './support/tenants.ts'

async function setUp(t: Test) {
  const root = await mkdtemp(join(tmpdir(), 'tenantry-targets-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  for (const name of ['disk', 'offsite']) await mkdir(join(root, name))
  const disk = createDirectoryTarget(join(root, 'disk'), 'here', 'disk')
  const offsite = createDirectoryTarget(join(root, 'offsite'), 'here', 'offsite')
  return { root, disk, offsite }
}

t.test(
  'a backup that a target lacks is copied there, and its copy is opened when the first one is damaged',
  async (t) => {
    const { root, disk, offsite } = await setUp(t)
    const backup = await write(disk)
    const { targets, copier, survey } = leader([disk, offsite], new Map([[backup.id, backup]]))
    const first = await survey()
    t.same(first.found, { unknown: 0, missing: 0, uncopied: 1, unavailable: [] })
    for (const copy of first.copies) await copier(copy, signal)
    // A survey during the copy has listed it too.
    for (const copy of first.copies) await copier(copy, signal)
    t.match((await survey()).found, { uncopied: 0 })
    const [from, to] = await Promise.all(['disk', 'offsite'].map((name) => filesBelow(join(root, name))))
    t.same([...(to?.values() ?? [])], [...(from?.values() ?? [])], 'each part and the record have the same bytes')

    await writeFile(join(root, 'disk', 'here', backup.id, 'files'), 'damaged')
    const { manifest } = await openGoodCopy(jobOf(backup), { targets, log }, signal)
    t.equal(manifest.backup_id, backup.id)
    await writeFile(join(root, 'offsite', 'here', backup.id, 'index'), 'damaged')
    await t.rejects(openGoodCopy(jobOf(backup), { targets, log }, signal), {
      code: 'DAMAGED',
      message: /"disk".*"files"/,
    })
  },
)

t.test('a damaged backup is not copied, and the attempt leaves nothing', async (t) => {
  const { root, disk, offsite } = await setUp(t)
  const backup = await write(disk)
  await writeFile(join(root, 'disk', 'here', backup.id, 'database'), 'damaged')
  const { copier, survey } = leader([disk, offsite], new Map([[backup.id, backup]]))
  for (const copy of (await survey()).copies) await t.rejects(copier(copy, signal), { code: 'DAMAGED' })
  t.same(await readdir(join(root, 'offsite', 'here')), [])
})

t.test('a copy whose backup was removed meanwhile is removed', async (t) => {
  const { root, disk, offsite } = await setUp(t)
  const backup = await write(disk)
  const known = new Map([[backup.id, backup]])
  const { copier, survey } = leader(
    [
      disk,
      {
        ...offsite,
        commit: async (id) => {
          await offsite.commit(id)
          known.clear()
        },
      },
    ],
    known,
  )
  for (const copy of (await survey()).copies) await copier(copy, signal)
  t.same(await readdir(join(root, 'offsite', 'here')), [])
})

t.test('an unavailable target is named, and does not hide the backups of the others', async (t) => {
  const { disk, offsite } = await setUp(t)
  const backup = await write(disk)
  const away: BackupTarget = { ...offsite, list: () => Promise.reject(unavailableTarget('offsite', undefined)) }
  const known = new Map([[backup.id, backup]])
  const { targets, survey } = leader([away, disk], known)
  t.same((await survey()).found, { unknown: 0, missing: 0, uncopied: 0, unavailable: ['offsite'] })
  t.same(
    (await targets.holders(backup.id)).map(({ name }) => name),
    ['disk'],
  )
  await t.rejects(
    targets.holders(randomUUID()),
    { code: 'TARGET_UNAVAILABLE' },
    'a backup that may be in the unavailable target is not called missing',
  )
  await t.rejects(leader([away], known).survey(), { code: 'TARGET_UNAVAILABLE' })
})

t.test('the leader reports targets as unavailable, also when none responds', async (t) => {
  const { disk } = await setUp(t)
  const away: BackupTarget = { ...disk, list: () => Promise.reject(unavailableTarget('disk', undefined)) }
  const lost = new AbortController()
  const available: [string, boolean][] = []
  const deps = {
    targets: createTargets([away], systemClock),
    regions: new Map(),
    clock: systemClock,
    log,
    changes: { subscribe: () => () => undefined },
    available: (name: string, isAvailable: boolean) => {
      available.push([name, isAvailable])
      lost.abort()
    },
  } as unknown as BackupJobDeps
  await runBackups(deps)({ epoch: 1n, lost: lost.signal })
  t.same(available, [['disk', false]])
})

t.test(
  'a directory that is gone, for example because it is not mounted, is unavailable instead of empty',
  async (t) => {
    const { root, disk, offsite } = await setUp(t)
    const backup = await write(disk)
    await rename(join(root, 'offsite'), join(root, 'away'))
    const { copier, survey } = leader([disk, offsite], new Map([[backup.id, backup]]))
    const { found, copies } = await survey()
    t.match(found, { uncopied: 0, unavailable: ['offsite'] })
    t.same(copies, [])
    const copy = { backupId: backup.id, from: [disk], to: offsite }
    await t.rejects(copier(copy, signal), { code: 'TARGET_UNAVAILABLE' })
    t.same((await readdir(root)).sort(), ['away', 'disk'], 'nothing is written to the place of the mount')
  },
)

t.test('a target that never responds counts as unavailable', async (t) => {
  const { disk, offsite } = await setUp(t)
  const silent: BackupTarget = { ...offsite, list: () => new Promise(() => undefined) }
  const limits: AbortController[] = []
  const clock = {
    timeout: () => {
      limits.push(new AbortController())
      return limits.at(-1)?.signal ?? signal
    },
  }
  const listed = createTargets([disk, silent], clock).list()
  limits[1]?.abort()
  t.match(await listed, [
    { target: { name: 'disk' }, entries: [] },
    { target: { name: 'offsite' }, entries: undefined, error: { code: 'TARGET_UNAVAILABLE' } },
  ])
})

t.test('a target whose call never returns is not called again until it does', async (t) => {
  const { disk } = await setUp(t)
  const calls: ((entries: []) => void)[] = []
  const silent: BackupTarget = { ...disk, list: () => new Promise((resolve) => calls.push(resolve)) }
  const limits: AbortController[] = []
  const clock = {
    timeout: () => {
      limits.push(new AbortController())
      return limits.at(-1)?.signal ?? signal
    },
  }
  const targets = createTargets([silent], clock)
  const first = targets.list()
  limits[0]?.abort()
  await t.rejects(first, { code: 'TARGET_UNAVAILABLE' })
  await t.rejects(targets.list(), { code: 'TARGET_UNAVAILABLE' })
  t.equal(calls.length, 1, 'further calls fail at once')
  calls[0]?.([])
  await new Promise((resolve) => setImmediate(resolve))
  const again = targets.list()
  calls[1]?.([])
  t.match(await again, [{ entries: [] }])
})

t.test('a copy with a damaged record is not made, and another target may have a good one', async (t) => {
  const { root, disk, offsite } = await setUp(t)
  const backup = await write(disk)
  const record = [...(await readdir(join(root, 'disk'), { recursive: true }))].find((path) => path.endsWith('/record'))
  await writeFile(join(root, 'disk', record ?? ''), '{}')
  const { copier, survey } = leader([disk, offsite], new Map([[backup.id, backup]]))
  for (const copy of (await survey()).copies) await t.rejects(copier(copy, signal), { code: 'DAMAGED' })
  t.same(await offsite.list(), [], 'nothing remains')
})

t.test('the file of targets', (t) => {
  const folder = t.testdir({ key: 'secret\n' })
  const nas = { name: 'nas', directory: '/mnt/nas/tenantry' }
  const s3 = {
    endpoint: 'https://s3.example.com',
    bucket: 'backups',
    access_key_id: 'id',
    secret_access_key_file: join(folder, 'key'),
  }
  const location = {
    endpoint: s3.endpoint,
    region: 'us-east-1',
    bucket: 'backups',
    prefix: '',
    pathStyle: true,
    accessKeyId: 'id',
    secretAccessKey: 'secret',
  }
  t.same(readTargets(JSON.stringify([nas, { name: 'offsite', s3 }])), [nas, { name: 'offsite', s3: location }])
  const wrong: [unknown, RegExp][] = [
    [[], /TENANTRY_BACKUP_TARGETS_FILE/],
    [[{ ...nas, directory: 'relative' }], /\[0\]\.directory is "relative"/],
    [[nas, { ...nas, directory: '/other' }], /\[1\]\.name is "nas", which is the name of another target/],
    [[{ ...nas, name: 'directory' }], /name of another target/],
    [[{ ...nas, name: 'Nas' }], /\[0\]\.name is "Nas"/],
    [[{ ...nas, path: '/x' }], /path is not a known field/],
    [[{ ...nas, s3 }], /directory is not a known field/],
    [[nas, { name: 'offsite', s3: { ...s3, bucket: 'B' } }], /\[1\]\.s3\.bucket is "B"/],
    [[{ name: 'offsite', s3: { ...s3, secret_access_key_file: '/none' } }], /secret_access_key_file is "\/none"/],
  ]
  for (const [file, message] of wrong) t.throws(() => readTargets(JSON.stringify(file)), { message })
  t.throws(() => readTargets('{'), { message: /not valid JSON/ })
  t.end()
})
