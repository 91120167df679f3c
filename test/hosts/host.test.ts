// The kernel's figures of a host, from its own texts; the sums of limits.
import { readFile } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { availableMemory, diskSpace, idleShare, isTenants, reservedBy } from '#control-plane/hosts/host.ts'
import { isMaterialChange } from '#control-plane/hosts/material-change.ts'
import { container } from '#test/support/control-plane/made-stack.ts'
import { stack } from '../drift/support/changes.ts'

const stat = (user: number, idle: number, iowait: number) =>
  `cpu  ${user} 0 0 ${idle} ${iowait} 0 0 0 5 5\ncpu0 1 2 3 4 5 6 7 8 9 10\n`

t.test('The idle share counts waits for disks as idle, and guests once', (t) => {
  t.equal(idleShare(stat(100, 500, 0), stat(150, 530, 20)), 0.5)
  t.equal(idleShare(stat(100, 500, 0), stat(200, 500, 0)), 0)
  t.equal(idleShare(stat(100, 500, 0), stat(100, 600, 0)), 1)
  t.equal(idleShare(stat(100, 500, 0), stat(100, 500, 0)), null, 'no time has passed')
  t.equal(idleShare('', 'cpu nonsense'), null)
  t.end()
})

t.test('Memory, CPU and disk are read from the texts of this machine', async (t) => {
  const free = availableMemory(await readFile('/proc/meminfo', 'utf8'))
  t.ok(free !== null && free > 0 && free < totalmem(), String(free))
  const before = await readFile('/proc/stat', 'utf8')
  const begin = performance.now()
  while (performance.now() - begin < 50) Math.hypot(begin, 1)
  const idle = idleShare(before, await readFile('/proc/stat', 'utf8'))
  t.ok(idle !== null && idle >= 0 && idle < 1, String(idle))
  const { stdout } = await promisify(execFile)('df', ['-Pk', '/'])
  const disk = diskSpace(stdout)
  t.ok((disk.free ?? 0) > 0 && (disk.total ?? 0) > (disk.free ?? 0), stdout)
  t.same(diskSpace('df: nothing'), { total: null, free: null })
  t.equal(availableMemory('MemTotal: 1 kB'), null)
})

t.test('Long names of devices, and numbers in them, do not confuse the space of a disk', (t) => {
  const text =
    'Filesystem     1024-blocks     Used Available Capacity Mounted on\n' +
    '/dev/mapper/volume 7 8   1000 400 600      40% /var/lib/postgresql\n'
  t.same(diskSpace(text), { total: 1_024_000, free: 614_400 })
  t.end()
})

t.test('Only the limits of running containers count, apart by whose they are', (t) => {
  const [postgres, runtime] = stack.services.map((service) => container(stack, service))
  if (postgres === undefined || runtime === undefined) throw new Error('no services')
  const platform = { ...postgres, labels: { ...postgres.labels, stack: 'region-local-00000000' } }
  const all = [postgres, { ...runtime, state: 'exited' as const }, platform]
  const size = { cpuMillis: 1000, memoryBytes: 2 ** 30 }
  t.same(reservedBy(all, isTenants), size)
  t.same(
    reservedBy(all, (id) => !isTenants(id)),
    size,
  )
  t.same(reservedBy([], isTenants), { cpuMillis: 0, memoryBytes: 0 })
  t.end()
})

t.test('Only what has changed materially is stored', (t) => {
  const at = (seconds: number) => new Date(1_800_000_000_000 + seconds * 1_000)
  const measurement = {
    name: 'host-a',
    apiVersion: null,
    cpuMillis: { total: 4000, free: 3000 },
    memoryBytes: { total: 1000, free: 500 },
    diskBytes: { total: null, free: null },
    reservedByTenants: { cpuMillis: 0, memoryBytes: 0 },
    reservedByPlatform: { cpuMillis: 0, memoryBytes: 0 },
    warnings: [],
  }
  const stored = { regionId: 'local', hostId: '', measuredAt: at(0), measurement, error: undefined }
  const isMaterial = (seconds: number, changes: object, error?: string) =>
    isMaterialChange(stored, { ...stored, measuredAt: at(seconds), measurement: { ...measurement, ...changes }, error })
  t.notOk(isMaterial(15, {}), 'the time')
  t.notOk(isMaterial(15, { memoryBytes: { total: 1000, free: 450 } }), 'a small change of what is free')
  t.ok(isMaterial(15, { memoryBytes: { total: 1000, free: 449 } }))
  t.notOk(isMaterial(15, { cpuMillis: { total: 4000, free: 2000 } }))
  t.ok(isMaterial(15, { cpuMillis: { total: 4000, free: 1999 } }))
  t.ok(isMaterial(15, { memoryBytes: { total: 2000, free: 500 } }))
  t.ok(isMaterial(15, { memoryBytes: { total: 1000, free: null } }))
  t.ok(isMaterial(15, { reservedByTenants: { cpuMillis: 0, memoryBytes: 1 } }))
  t.ok(isMaterial(15, { warnings: ['no swap limit'] }))
  t.ok(isMaterial(300, {}), 'the age of the stored one')
  t.ok(isMaterial(15, {}, 'no response'), 'a failure')
  t.ok(isMaterialChange(undefined, stored), 'the first one')
  const failed = { ...stored, error: 'no response' }
  t.notOk(isMaterialChange(failed, failed), 'the same failure again')
  t.ok(isMaterialChange(failed, stored), 'its end')
  t.end()
})
