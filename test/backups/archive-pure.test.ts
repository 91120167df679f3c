// The parts of archives without a server: names of segments, what a moment is recovered from, what expires, until when an
// archive is complete, and the command that puts segments into the spool.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { exists, installPackages } from '#scripts/debian-packages.ts'
import { archiveSettings, archiveSpool, memberArchiveSettings } from '#control-plane/stacks/archive-settings.ts'
import {
  expiredBases,
  firstNeededSegment,
  isOver,
  needsBase,
  rangesOf,
  recoverySource,
  usableBases,
  type Archive,
} from '#control-plane/backups/archive/archive.ts'
import { advance, noProgress, type Observation, type Progress } from '#control-plane/backups/archive/progress.ts'
import { readBounds, readObservation } from '#control-plane/backups/archive/spool.ts'
import { continuesLog, isCutOff, readHistory, unpackHistory } from '#control-plane/backups/archive/timelines.ts'
import {
  endOfSegment,
  isSegment,
  nextSegment,
  segmentAt,
  segmentsBetween,
  toPosition,
} from '#control-plane/backups/archive/wal.ts'

const segment = (number: number) => `0000000100000000000000${number.toString(16).toUpperCase().padStart(2, '0')}`
const hour = (number: number) => new Date(Date.UTC(2026, 10, 1, number))

/** Returns an archive whose base backups end at the given hours, each in the segment of that number. */
function archive(hours: readonly number[], change: Partial<Archive> = {}): Archive {
  return {
    id: 'a',
    tenantId: 't_1',
    state: 'open',
    firstSegment: segment(1),
    lastSegment: segment(200),
    latest: hour(200),
    bytes: 0,
    error: undefined,
    createdAt: hour(0),
    bases: hours.map((number) => ({
      id: `base ${number}`,
      startSegment: segment(number),
      stopSegment: segment(number),
      completeAt: hour(number),
      createdAt: hour(number),
    })),
    ...change,
  }
}

t.test('Names of segments follow from positions, also over the end of a log', async (t) => {
  t.equal(segmentAt(toPosition('0/2000028')), '000000010000000000000002')
  t.equal(segmentAt(toPosition('1/FF000000'), 26), '0000001A00000001000000FF')
  t.equal(nextSegment('0000001A00000001000000FF'), '0000001A0000000200000000')
  t.equal(endOfSegment('0000000100000001000000FF'), toPosition('2/0'))
  t.same(
    [...segmentsBetween('0000000100000001000000FE', '000000010000000200000001')].map((name) => name.slice(15)),
    ['1000000FE', '1000000FF', '200000000', '200000001'],
  )
  for (const name of ['000000010000000000000002.partial', '00000002.history', 'archive', '../1', ''])
    t.notOk(isSegment(name), name)
  t.throws(() => toPosition('0/2000028; drop'), RangeError)
})

t.test(
  'A moment is recovered from the newest base backup before it, and only if all segments are stored',
  async (t) => {
    const one = archive([10, 34, 58])
    t.match(recoverySource([one], hour(40)), { base: { id: 'base 34', startSegment: segment(34) } })
    t.match(recoverySource([one], hour(34)), { base: { id: 'base 34' } })
    t.match(recoverySource([one], hour(200)), { base: { id: 'base 58' }, lastSegment: segment(200) })
    t.match(
      recoverySource([one], hour(20)),
      { base: { id: 'base 10' }, lastSegment: segment(58) },
      'segments after the second later base backup are not needed',
    )
    t.equal(recoverySource([one], hour(9)), undefined, 'before the first')
    t.equal(recoverySource([one], hour(201)), undefined, 'after the latest')
    const short = { ...one, lastSegment: segment(33) }
    t.same(
      usableBases(short).map(({ id }) => id),
      ['base 10'],
      'a base backup whose last segment is not stored yet',
    )
    t.same(
      usableBases({ ...one, firstSegment: segment(11) }).map(({ id }) => id),
      ['base 34', 'base 58'],
    )
    t.same(rangesOf([{ ...one, latest: undefined }]), [])
    t.same(rangesOf([{ ...one, lastSegment: undefined }]), [])
  },
)

t.test('After a gap there are two ranges, and a moment between them is in none', async (t) => {
  const old = archive([10], { id: 'old', state: 'ended', latest: hour(20) })
  const open = archive([30], { id: 'open', latest: hour(40) })
  t.same(rangesOf([open, old]), [
    { from: hour(10), to: hour(20) },
    { from: hour(30), to: hour(40) },
  ])
  t.match(recoverySource([old, open], hour(15)), { archive: { id: 'old' } })
  t.equal(recoverySource([old, open], hour(25)), undefined)
  t.match(recoverySource([old, open], hour(35)), { archive: { id: 'open' } })
  t.equal(recoverySource([{ ...old, state: 'removing' }], hour(15)), undefined)
  t.same(rangesOf([{ ...old, state: 'removing' }]), [])
})

t.test('What the covered days need stays, and the rest expires', async (t) => {
  const one = archive([1, 25, 49, 73])
  t.same(expiredBases(one, 1, hour(74)), ['base 1', 'base 25'], 'base 49 is needed for moments before base 73')
  t.same(expiredBases(one, 30, hour(74)), [])
  t.same(expiredBases(archive([1]), 1, hour(190)), [], 'the only base backup stays')
  t.equal(firstNeededSegment(one), segment(1))
  const ended = archive([1], { state: 'ended', latest: hour(48) })
  t.notOk(isOver(ended, 1, hour(71)))
  t.ok(isOver(ended, 1, hour(73)))
  t.ok(isOver(archive([], { state: 'ended' }), 1, hour(1)), 'nothing can be recovered from it')
  t.notOk(isOver(archive([1]), 1, hour(199)), 'an open archive')
  t.ok(needsBase(archive([]), hour(0)))
  t.notOk(needsBase(one, hour(96)))
  t.ok(needsBase(one, hour(97)))
  const interrupted = one.bases.map((base) => ({ ...base, completeAt: undefined }))
  t.ok(needsBase({ ...one, bases: interrupted }, hour(74)))
  t.notOk(needsBase({ ...one, state: 'ended' }, hour(97)))
})

t.test('An archive is complete until an observation once its segments reach the observed position', async (t) => {
  let progress: Progress = noProgress
  const observe = (
    seconds: number,
    position: string,
    idleAt: string | undefined,
    last: string | undefined,
    timeline = 1,
  ) => {
    const observation: Observation = { at: new Date(seconds * 1000), position: toPosition(position), idleAt, timeline }
    const next = advance(progress, observation, last)
    progress = next.progress
    return next.latest === undefined ? undefined : next.latest.getTime() / 1000
  }
  t.equal(observe(10, '0/2000100', '700', undefined), undefined, 'nothing is stored')
  t.equal(observe(20, '0/2500000', undefined, segment(1)), undefined)
  t.equal(observe(30, '0/3000200', '705', segment(2)), 20, 'the segment with the first two is stored')
  t.equal(observe(40, '0/3000200', '705', segment(2)), undefined, 'transactions of the third are not stored yet')
  t.equal(observe(50, '0/4000080', '705', segment(3)), 50, 'nothing was committed since the third')
  t.equal(observe(60, '0/4000100', '705', segment(3)), 60, 'an idle Postgres finishes no segment')
  t.equal(observe(70, '0/4000400', '706', segment(3)), undefined, 'a commit that no segment has')
  t.equal(observe(80, '0/4000400', undefined, segment(3)), undefined)
  t.equal(observe(90, '0/5000100', '707', segment(4)), 80)
  for (let n = 0; n < 1000; n++) observe(100 + n, '0/6000000', undefined, segment(4))
  t.ok(progress.pending.length <= 128, 'the list is bounded')
  const branched = `00000002${segment(5).slice(8)}`
  t.equal(observe(2000, '0/5800000', '707', segment(5), 2), undefined, 'the log of the former primary does not count')
  t.same(progress.pending.length, 1)
  t.equal(observe(2010, '0/6000100', '709', branched, 2), 2000)
})

t.test('The reports of Postgres and pg_basebackup are read', async (t) => {
  t.same(readObservation('1795508000.123456 0/2000100 750 750 0000001A\n'), {
    at: new Date(1795507999123),
    position: 0x2000100n,
    timeline: 26,
    idleAt: '750',
  })
  t.equal(readObservation('1795508000.123456 0/2000100 749 751').idleAt, undefined, 'a transaction is in progress')
  const history = [
    '1795508000.2005',
    'START WAL LOCATION: 0/2000028 (file 000000010000000000000002)',
    'STOP WAL LOCATION: 0/3000120 (file 000000010000000000000003)',
    'CHECKPOINT LOCATION: 0/2000080',
    'BACKUP METHOD: streamed',
    'LABEL: c839eaaa-2f5e-4610-9909-786ce81273a9',
  ].join('\n')
  t.same(readBounds(history), {
    startSegment: segment(2),
    stopSegment: segment(3),
    completeAt: new Date(1795508001201),
  })
  t.throws(() => readBounds('1795508000.2\n'), { code: 'FAILED' })
})

if (!(await exists('/usr/bin/zstd'))) await installPackages('zstd')
const programs = ['sh', 'gzip', 'sync', 'mv', 'rm', 'ls', 'wc', 'grep', 'head', 'xargs', 'mkdir']

/** Returns the path of a directory with the programs of an image, with or without `zstd`. */
async function programsOf(t: Test, hasZstd: boolean): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-programs-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  for (const name of [...programs, ...(hasZstd ? ['zstd'] : [])]) {
    const { stdout } = await promisify(execFile)('sh', ['-c', `command -v ${name}`])
    await symlink(stdout.trim(), join(directory, name))
  }
  return directory
}

/** Returns the directories of a spool, and what runs the command of Postgres with its exit code. */
async function openSpool(t: Test, settings: Readonly<Record<string, string>>, PATH: string) {
  const spool = await mkdtemp(join(tmpdir(), 'tenantry-spool-'))
  t.teardown(() => rm(spool, { recursive: true, force: true }))
  const data = join(spool, 'data')
  await mkdir(join(data, 'pg_wal/archive_status'), { recursive: true })
  const command = (settings['archive_command'] ?? '').replaceAll(archiveSpool, spool)
  const finish = async (name: string, content: string | undefined = name) => {
    if (content !== '') await writeFile(join(data, 'pg_wal', name), content)
    const text = command.replaceAll('%p', `pg_wal/${name}`).replaceAll('%f', name)
    return new Promise((resolve) => {
      execFile('sh', ['-c', text], { cwd: data, env: { PATH } }, (error) => resolve(error === null ? 0 : error.code))
    })
  }
  return { spool, data, finish, stored: () => readdir(join(spool, 'on')) }
}

t.test('Segments are compressed with zstd, or with gzip in an image without it', async (t) => {
  for (const [hasZstd, suffix, decompress] of [
    [true, 'zst', zstdDecompressSync],
    [false, 'gz', gunzipSync],
  ] as const) {
    const { spool, finish, stored } = await openSpool(t, archiveSettings, await programsOf(t, hasZstd))
    await mkdir(join(spool, 'on'))
    for (let times = 0; times < 2; times++) t.equal(await finish(segment(2)), 0, 'a repeat changes nothing')
    t.same(await stored(), [`${segment(2)}.${suffix}`])
    t.equal(decompress(await readFile(join(spool, 'on', `${segment(2)}.${suffix}`))).toString(), segment(2))
  }
})

t.test('The history of a timeline is read from the content of either program', async (t) => {
  const text = '1\t0/6000148\tno recovery target specified\n'
  for (const compress of [zstdCompressSync, gzipSync]) {
    t.same(unpackHistory(compress(text)), readHistory(text))
    t.throws(() => unpackHistory(compress('x'.repeat(2 ** 20 + 1))), RangeError)
  }
})

t.test('Segments are put into the spool whole, and are dropped at its bound', async (t) => {
  const { spool, data, finish, stored } = await openSpool(t, archiveSettings, await programsOf(t, true))
  t.equal(await finish(segment(1)), 0, 'no archive has begun')
  await mkdir(join(spool, 'on'))
  t.equal(await finish('00000002.history'), 0)
  t.equal(await finish(`${segment(1)}.00000028.backup`), 0)
  t.same(await stored(), [])
  t.equal(await finish(segment(2)), 0)
  t.same(await stored(), [`${segment(2)}.zst`])
  t.not(await finish(segment(3), ''), 0, 'a failure is reported, so that Postgres tries it again')
  for (let n = 0; n < 32; n++) await writeFile(join(data, 'pg_wal/archive_status', `${segment(n)}.ready`), '')
  t.equal(await finish(segment(3), ''), 0, 'Postgres retains no more segments than that')
  t.same(await stored(), [`${segment(2)}.zst`], 'nothing partial remains')
  for (let n = 3; n < 34; n++) await writeFile(join(spool, 'on', `${segment(n)}.zst`), '')
  t.equal(await finish(segment(40)), 0)
  t.equal((await stored()).length, 32, 'the spool is full: the segment is dropped')
})

t.test('A replica keeps its newest segments, and continues with them as a primary', async (t) => {
  const { spool, data, finish, stored } = await openSpool(t, memberArchiveSettings, await programsOf(t, true))
  const waiting = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => `${segment(from + index)}.zst`)
  await writeFile(join(data, 'standby.signal'), '')
  for (let n = 1; n <= 40; n++) t.equal(await finish(segment(n)), 0)
  t.same((await stored()).sort(), waiting(9, 40))
  await rm(join(data, 'standby.signal'))
  t.equal(await finish('00000002.history'), 0)
  t.equal(await finish('000000010000000000000029.partial'), 0)
  t.equal(await finish(`${segment(1)}.00000028.backup`), 0)
  t.same((await stored()).sort(), ['00000002.history.zst', ...waiting(9, 40)].sort())
  for (let n = 41; n <= 71; n++) await writeFile(join(spool, 'on', `${segment(n)}.zst`), '')
  t.equal(await finish(segment(90)), 0)
  t.equal((await stored()).length, 64, 'the spool is full: the segment is dropped')
})

t.test('A log continues on a later timeline where that one branched off', async (t) => {
  const on = (timeline: number, number: number) => `0000000${timeline}${segment(number).slice(8)}`
  const second = readHistory('1\t0/6000148\tno recovery target specified\n')
  t.same(second, [{ timeline: 1, end: 0x6000148n }])
  t.ok(continuesLog(on(1, 5), on(1, 6), undefined))
  t.notOk(continuesLog(on(1, 5), on(1, 7), undefined))
  t.ok(continuesLog(on(1, 5), on(2, 6), second))
  t.ok(continuesLog(on(1, 7), on(2, 6), second), 'the former primary had written more')
  t.notOk(continuesLog(on(1, 4), on(2, 6), second), 'a segment before the branch is missing')
  t.notOk(continuesLog(on(1, 5), on(2, 7), second), 'the first segment of the timeline is missing')
  t.notOk(continuesLog(on(1, 5), on(2, 6), undefined), 'the history is missing')
  t.notOk(continuesLog(on(2, 6), on(1, 7), undefined))
  const third = readHistory(
    '1\t0/6000148\tno recovery target specified\n\n2\t0/6800000\tno recovery target specified\n',
  )
  t.ok(continuesLog(on(1, 5), on(3, 6), third), 'the second timeline finished no segment')
  t.ok(continuesLog(on(2, 6), on(3, 6), third), 'the second timeline went on elsewhere')
  t.notOk(continuesLog(on(4, 6), on(5, 6), third), 'the timeline is not among the predecessors')
  const late = readHistory('1\t0/6000148\tx\n2\t0/8000000\tx\n')
  t.notOk(continuesLog(on(1, 7), on(3, 8), late), 'the segments of the second timeline are missing')
  t.ok(continuesLog(on(2, 7), on(3, 8), late))
  t.ok(isCutOff(on(1, 6), on(2, 6)))
  t.notOk(isCutOff(on(1, 5), on(2, 6)))
  t.notOk(isCutOff(on(2, 6), on(2, 6)))
})
