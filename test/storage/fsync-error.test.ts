// An fsync of a file or of its directory fails: that file is never synced again, nothing of it remains, the tenant is
// unhealthy, and uploads succeed again once the disk stores what is written. The test injects the errors into the file
// handles of this process, including the runtime's.
import { open, readlink, type FileHandle } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { seed } from '#test/support/effort.ts'
import { internalPaths } from '@tenantry/contract'
import { inspect, sound } from './support/inspect.ts'
import { openScene } from './support/scene.ts'
import { serve } from './support/served-storage.ts'
import { Load } from './support/writers.ts'

interface Syncs {
  /** Returns whether the fsync of the file at this path fails. */
  fails: (path: string) => boolean
  /** Paths of the failed calls. */
  failed: string[]
  /** Paths of all calls. */
  all: string[]
}

async function watchSyncs(t: Test): Promise<Syncs> {
  const handle = await open('/')
  const prototype = Object.getPrototypeOf(handle) as Pick<FileHandle, 'sync' | 'datasync'>
  await handle.close()
  const syncs: Syncs = { fails: () => false, failed: [], all: [] }
  for (const name of ['sync', 'datasync'] as const) {
    const real = prototype[name]
    prototype[name] = async function (this: FileHandle) {
      const path = await readlink(`/proc/self/fd/${this.fd}`)
      syncs.all.push(path)
      if (!syncs.fails(path)) return real.call(this)
      syncs.failed.push(path)
      throw Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO', errno: -5, syscall: 'fsync' })
    }
    t.teardown(() => {
      prototype[name] = real
    })
  }
  return syncs
}

t.test('A failed fsync rejects the upload', async (t) => {
  const syncs = await watchSyncs(t)
  const scene = await openScene(t)
  const { request, idle } = await serve(t, scene)
  const load = new Load(seed)
  await load.begin(request)
  const put = (path: string, body: string) =>
    request('POST', `/storage/v1/object/docs/${path}`, body, { 'content-type': 'text/plain' })
  const health = async () => (await request('GET', internalPaths.tenantHealth(scene.home.tenantId))).json()
  t.equal((await put('kept', 'old')).status, 200)

  for (const [of, fails] of [
    ['a file', (path: string) => /[0-9a-f-]{36}$/.test(path)],
    ['its directory', (path: string) => /\/[0-9a-f]{2}$/.test(path)],
  ] as const) {
    t.test(
      `After a failed fsync of ${of} the upload is rejected, nothing of it remains, and it is not retried`,
      async (t) => {
        const [before, failed] = [syncs.all.length, syncs.failed.length]
        syncs.fails = fails
        for (const path of ['kept', 'fresh']) {
          const { status, text } = await put(path, 'new')
          t.equal(status, 503)
          t.match(JSON.parse(text), { code: 'STORAGE_UNAVAILABLE' })
        }
        const files = syncs.all
          .slice(before)
          .filter((path) => /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(path) && !path.includes('probe'))
        t.equal(new Set(files).size, files.length, 'no file is synced twice')
        t.ok(syncs.failed.length > failed)
        syncs.fails = () => false
        await idle()
        t.equal((await request('GET', '/storage/v1/object/docs/kept')).text, 'old')
        t.equal((await request('GET', '/storage/v1/object/docs/fresh')).status, 404)
        t.same(await inspect(scene, request, load), sound)
      },
    )

    t.test(
      `After a failed fsync of ${of} the tenant is unhealthy and accepts no writes until the disk stores them`,
      async (t) => {
        syncs.fails = fails
        t.equal((await put('fresh', 'new')).status, 503)
        syncs.fails = () => true
        t.match(await health(), {
          status: 'unhealthy',
          components: { storage: { status: 'unhealthy', message: 'The disk does not store what is written.' } },
        })
        const tried = syncs.all.length
        t.equal((await put('fresh', 'new')).status, 503)
        t.equal(
          (
            await request('POST', '/storage/v1/object/copy', {
              bucketId: 'docs',
              sourceKey: 'kept',
              destinationKey: 'fresh',
            })
          ).status,
          503,
        )
        t.same(
          syncs.all.slice(tried).filter((path) => !path.includes('probe')),
          [],
          'only the probe of the disk was retried',
        )
        t.equal((await request('GET', '/storage/v1/object/docs/kept')).text, 'old', 'reads continue')
        syncs.fails = () => false
        t.match(await health(), { status: 'healthy' })
        t.equal((await put('fresh', 'new')).status, 200)
        t.equal((await request('GET', '/storage/v1/object/docs/fresh')).text, 'new')
        await request('DELETE', '/storage/v1/object/docs/fresh')
        await idle()
        t.same(await inspect(scene, request, load), sound)
      },
    )
  }
})
