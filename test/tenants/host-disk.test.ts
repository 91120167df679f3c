// New tenants on a host whose disk is nearly full: refused when they would have volumes of their own.
import t from 'tap'
import { diskOf } from '#control-plane/engines/docker/data-root.ts'
import { checkHostDisk, hostDiskReader } from '#control-plane/tenants/host-limits.ts'
import type { HostInfo } from '#control-plane/engines/container-host.ts'
import { startApi } from '#test/support/control-plane/api.ts'

const giga = 2 ** 30

t.test('two GiB and a twentieth of the disk are to be left', (t) => {
  const rejected = { code: 'HOST_DISK_FULL', status: 507 }
  t.doesNotThrow(() => checkHostDisk('r', { freeBytes: 2 * giga, totalBytes: 40 * giga }))
  t.throws(() => checkHostDisk('r', { freeBytes: 2 * giga - 1, totalBytes: 3 * giga }), rejected)
  t.doesNotThrow(() => checkHostDisk('r', { freeBytes: 50 * giga, totalBytes: 1000 * giga }))
  t.throws(() => checkHostDisk('r', { freeBytes: 49 * giga, totalBytes: 1000 * giga }), {
    ...rejected,
    message: 'the host of region "r" has 52.6 GB of disk left: it takes no more tenants with services of their own',
  })
  t.end()
})

t.test('an engine is asked every ten seconds, and one that does not answer stops nobody', async (t) => {
  let at = 0
  let requested = 0
  let disk: HostInfo['disk'] = { freeBytes: 1, totalBytes: 2 }
  const info = () => {
    requested++
    if (disk === undefined) return Promise.reject(new Error('no answer'))
    return Promise.resolve({ name: '', apiVersion: '1.41', memoryBytes: 1, cpus: 1, warnings: [], disk })
  }
  const read = hostDiskReader({
    engineOf: (region) => (region === 'there' ? { info } : undefined),
    now: () => new Date(at),
    clock: { timeout: () => new AbortController().signal },
  })
  t.same(await Promise.all([read('there'), read('there')]), [disk, disk])
  at = 9_999
  await read('there')
  t.equal(requested, 1)
  at = 10_000
  disk = undefined
  t.equal(await read('there'), undefined)
  t.equal(requested, 2)
  t.equal(await read('elsewhere'), undefined)
})

t.test('where the directory is not seen, and nobody knows better, nothing is said', async (t) => {
  t.match(await diskOf('/'), { freeBytes: Number, totalBytes: Number })
  t.equal(await diskOf(undefined), undefined)
})

t.test('a create is refused, and one that shares is not', async (t) => {
  const api = await startApi(t, { cloud: true, control: false })
  api.engine.host = { ...api.engine.host, disk: { freeBytes: giga, totalBytes: 100 * giga } }
  const create = (name: string, isolation: string, region = 'cloud') =>
    api.call('POST', '/v1/tenants', { body: { name, plan: 'Pro', region, isolation } })
  const before = await api.counts()
  t.match(await create('own', 'database-per-tenant'), {
    status: 507,
    body: { error: 'insufficient_storage', code: 'HOST_DISK_FULL' },
  })
  t.same(await api.counts(), before, 'nothing is made')
  t.match(await create('shared', 'schema-per-tenant'), { status: 201 })
  t.match(await create('elsewhere', 'schema-per-tenant', 'local'), { status: 201 })
  api.clock.ahead = 11_000
  api.engine.host = { ...api.engine.host, disk: undefined }
  t.match(await create('own', 'database-per-tenant'), { status: 201 })
})
