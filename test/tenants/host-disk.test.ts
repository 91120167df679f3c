// On a host whose disk is nearly full, the control plane rejects new dedicated tenants and admits shared ones.
import t from 'tap'
import { diskOf } from '#control-plane/engines/docker/data-root.ts'
import { checkHostDisk, hostDiskReader } from '#control-plane/tenants/host-limits.ts'
import type { HostInfo } from '#control-plane/engines/container-host.ts'
import { startApi } from '#test/support/control-plane/api.ts'

const giga = 2 ** 30

t.test('a host must have 2 GiB and 5 % of its disk free', (t) => {
  const rejected = { code: 'HOST_DISK_FULL', status: 507 }
  t.doesNotThrow(() => checkHostDisk('r', { freeBytes: 2 * giga, totalBytes: 40 * giga }))
  t.throws(() => checkHostDisk('r', { freeBytes: 2 * giga - 1, totalBytes: 3 * giga }), rejected)
  t.doesNotThrow(() => checkHostDisk('r', { freeBytes: 50 * giga, totalBytes: 1000 * giga }))
  t.throws(() => checkHostDisk('r', { freeBytes: 49 * giga, totalBytes: 1000 * giga }), {
    ...rejected,
    message:
      'The host of the region "r" has 52.6 GB of free disk space, too little for another tenant with services of its own.',
  })
  t.end()
})

t.test('the reader queries an engine every ten seconds, and an engine that does not respond is ignored', async (t) => {
  let at = 0
  let queries = 0
  let disk: HostInfo['disk'] = { freeBytes: 1, totalBytes: 2 }
  const info = () => {
    queries++
    if (disk === undefined) return Promise.reject(new Error('no response'))
    return Promise.resolve({ name: '', apiVersion: '1.41', memoryBytes: 1, cpus: 1, warnings: [], disk })
  }
  const read = hostDiskReader({
    engineOf: (region) => (region === 'known' ? { info } : undefined),
    now: () => new Date(at),
    clock: { timeout: () => new AbortController().signal },
  })
  t.same(await Promise.all([read('known'), read('known')]), [disk, disk])
  at = 9_999
  await read('known')
  t.equal(queries, 1)
  at = 10_000
  disk = undefined
  t.equal(await read('known'), undefined)
  t.equal(queries, 2)
  t.equal(await read('elsewhere'), undefined)
})

t.test('the disk of an unknown directory is undefined', async (t) => {
  t.match(await diskOf('/'), { freeBytes: Number, totalBytes: Number })
  t.equal(await diskOf(undefined), undefined)
})

t.test('a dedicated tenant is rejected, and a shared one is created', async (t) => {
  const api = await startApi(t, { cloud: true, control: false })
  api.engine.host = { ...api.engine.host, disk: { freeBytes: giga, totalBytes: 100 * giga } }
  const create = (name: string, isolation: string, region = 'cloud') =>
    api.call('POST', '/v1/tenants', { body: { name, plan: 'Pro', region, isolation } })
  const before = await api.counts()
  t.match(await create('own', 'database-per-tenant'), {
    status: 507,
    body: { error: 'insufficient_storage', code: 'HOST_DISK_FULL' },
  })
  t.same(await api.counts(), before, 'nothing is created')
  t.match(await create('shared', 'schema-per-tenant'), { status: 201 })
  t.match(await create('elsewhere', 'schema-per-tenant', 'local'), { status: 201 })
  api.clock.ahead = 11_000
  api.engine.host = { ...api.engine.host, disk: undefined }
  t.match(await create('own', 'database-per-tenant'), { status: 201 })
})
