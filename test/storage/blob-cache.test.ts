// Small files that were read recently are sent from memory; each request still checks the caller's rights in the
// database.
import t from 'tap'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { BlobCache } from '#tenant-runtime/storage/objects/blob-cache.ts'
import { startRuntime } from '#test/support/runtime.ts'

t.test('The memory of small blobs', async (t) => {
  t.test(
    'The memory evicts the least recently used blob when it is full, and all blobs of a purged tenant',
    async (t) => {
      const cache = new BlobCache(3 * (100 + 256))
      for (const id of ['a', 'b', 'c']) cache.set('one', id, Buffer.alloc(100, id))
      t.equal(cache.get('one', 'a')?.toString(), 'a'.repeat(100))
      cache.set('two', 'd', Buffer.alloc(100))
      t.same(
        ['a', 'b', 'c'].map((id) => cache.get('one', id) !== undefined),
        [true, false, true],
      )
      t.equal(cache.get('two', 'a'), undefined, 'of another tenant')
      cache.evict('one')
      t.same([cache.get('one', 'a'), cache.get('one', 'c'), cache.get('two', 'd')?.length], [undefined, undefined, 100])
      for (const id of ['e', 'f']) cache.set('one', id, Buffer.alloc(100))
      t.equal(cache.get('two', 'd')?.length, 100, 'there is room again')
      cache.set('one', 'large', Buffer.alloc(10_000))
      t.equal(cache.get('one', 'large'), undefined, 'a blob larger than the memory')
    },
  )

  t.test('The runtime sends the newest bytes of the row, to callers with the right to read', async (t) => {
    const runtime = await startRuntime(t)
    const tenant = await runtime.addTenant()
    await tenant.request('POST', '/storage/v1/bucket', { as: 'ada', body: { name: 'docs' } })
    const text = { 'content-type': 'text/plain' }
    const get = async (caller?: string, headers = {}) => {
      const { status, text } = await tenant.request('GET', '/storage/v1/object/docs/a', {
        ...(caller === undefined ? {} : { as: caller }),
        headers,
      })
      return [status, text]
    }
    await tenant.request('POST', '/storage/v1/object/docs/a', { as: 'ada', body: 'first', headers: text })
    for (let times = 0; times < 2; times++) t.same(await get('ada'), [200, 'first'])
    for (const file of await tenant.files())
      await rm(join(runtime.directory, 'blobs', tenant.id, file.slice(0, 2), file))
    t.same(await get('ada'), [200, 'first'], 'the bytes came from memory, because the file is absent')
    t.equal((await get('ben'))[0], 404, 'in a private bucket')
    t.equal((await get('ada', { range: 'bytes=1-2' }))[0], 404, 'a range is read from the file')
    await tenant.request('POST', '/storage/v1/object/docs/a', { as: 'ada', body: 'second', headers: text })
    t.same(await get('ada'), [200, 'second'])
    await tenant.rows('update storage_objects set size = 3')
    t.not((await get('ada'))[1], 'second', 'the runtime sends no more bytes than the row records')
    await tenant.request('DELETE', '/storage/v1/object/docs/a', { as: 'ada' })
    t.equal((await get('ada'))[0], 404)
  })
})
