// A full disk, simulated by a small one in memory: uploads are rejected, everything else works, no partial file
// remains, and uploads succeed again once there is room. Needs root to mount the disk.
import { statfs } from 'node:fs/promises'
import t from 'tap'
import { seed } from '#test/support/effort.ts'
import { openSmallDisk } from './support/cuttable-disk.ts'
import { inspect, sound } from './support/inspect.ts'
import { openScene } from './support/scene.ts'
import { serve } from './support/served-storage.ts'
import { Load } from './support/writers.ts'

const megabyte = 1_000_000
const objects = '/storage/v1/object/docs'
const binary = { 'content-type': 'application/octet-stream' }

t.test('A full disk', async (t) => {
  const data = await openSmallDisk(t, 8 * megabyte)
  const scene = await openScene(t, { data })
  const { request, idle } = await serve(t, scene)
  // The load has no acknowledged writes to compare; the other checks of the inspection apply.
  const load = new Load(seed)
  await load.begin(request)
  const put = (path: string, body: Buffer, headers: Record<string, string> = binary) =>
    request('POST', `${objects}/${path}`, body, headers)
  const free = async () => {
    const { bavail, bsize } = await statfs(data)
    return bavail * bsize
  }

  t.equal((await put('first', Buffer.alloc(3 * megabyte, 'a'))).status, 200)
  t.equal((await put('second', Buffer.alloc(2 * megabyte, 'b'))).status, 200)
  const before = await free()

  t.test('An upload that does not fit is rejected and leaves nothing behind', async (t) => {
    const large = Buffer.alloc(4 * megabyte, 'c')
    const responses = await Promise.all([
      put('third', large),
      put('first', large),
      request('POST', `${objects}/third`, [large.subarray(0, megabyte), large.subarray(megabyte)], binary),
      request('POST', '/storage/v1/object/copy', { bucketId: 'docs', sourceKey: 'first', destinationKey: 'third' }),
    ])
    for (const { status, text } of responses) {
      t.equal(status, 507)
      t.match(JSON.parse(text), { statusCode: '507', code: 'STORAGE_FULL' })
    }
    await idle()
    t.equal((await request('GET', `${objects}/third`)).status, 404)
    t.ok((await free()) >= before, 'no byte of them remains')
    t.same(await inspect(scene, request, load), sound)
  })

  t.test('A full disk still allows reads, small uploads and deletes, and uploads again after a delete', async (t) => {
    t.ok((await request('GET', `${objects}/first`)).bytes.equals(Buffer.alloc(3 * megabyte, 'a')))
    t.equal((await put('small', Buffer.alloc(1_000))).status, 200)
    t.equal((await request('DELETE', `${objects}/first`)).status, 200)
    await idle()
    t.ok((await free()) > before, 'room was made')
    t.equal((await put('third', Buffer.alloc(4 * megabyte, 'c'))).status, 200)
    t.ok((await request('GET', `${objects}/third`)).bytes.equals(Buffer.alloc(4 * megabyte, 'c')))
    t.same(await inspect(scene, request, load), sound)
  })
})
