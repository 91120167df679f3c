// Small files that were read lately are sent from memory; what may be read is asked of the database each time.
import t from 'tap'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { BlobMemory } from '#tenant-runtime/storage/objects/blob-memory.ts'
import { startRuntime } from '#test/support/runtime.ts'

t.test('the memory of small blobs', async (t) => {
  t.test('forgets what was used longest ago when it is full, and a tenant that is purged', async (t) => {
    const memory = new BlobMemory(3 * (100 + 256))
    for (const id of ['a', 'b', 'c']) memory.set('one', id, Buffer.alloc(100, id))
    t.equal(memory.get('one', 'a')?.toString(), 'a'.repeat(100))
    memory.set('two', 'd', Buffer.alloc(100))
    t.same(
      ['a', 'b', 'c'].map((id) => memory.get('one', id) !== undefined),
      [true, false, true],
    )
    t.equal(memory.get('two', 'a'), undefined, 'of another tenant')
    memory.evict('one')
    t.same(
      [memory.get('one', 'a'), memory.get('one', 'c'), memory.get('two', 'd')?.length],
      [undefined, undefined, 100],
    )
    for (const id of ['e', 'f']) memory.set('one', id, Buffer.alloc(100))
    t.equal(memory.get('two', 'd')?.length, 100, 'there is room again')
    memory.set('one', 'large', Buffer.alloc(10_000))
    t.equal(memory.get('one', 'large'), undefined, 'larger than all of it')
  })

  t.test('gives what the row says now: the newest bytes, to those who may', async (t) => {
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
    t.same(await get('ada'), [200, 'first'], 'without its file: it came from memory')
    t.equal((await get('ben'))[0], 404, 'of a private bucket')
    t.equal((await get('ada', { range: 'bytes=1-2' }))[0], 404, 'a part is read from the file')
    await tenant.request('POST', '/storage/v1/object/docs/a', { as: 'ada', body: 'second', headers: text })
    t.same(await get('ada'), [200, 'second'])
    await tenant.rows('update storage_objects set size = 3')
    t.not((await get('ada'))[1], 'second', 'more than its row says is not sent')
    await tenant.request('DELETE', '/storage/v1/object/docs/a', { as: 'ada' })
    t.equal((await get('ada'))[0], 404)
  })
})
