// Two hundred concurrent uploads at the plan's file quota: never exceeded by a byte, and the counters end exact.
import t from 'tap'
import { openScene } from './support/scene.ts'
import { serve } from './support/served-storage.ts'

const quota = 1_000_000
const size = 9_973
const uploads = 200
const binary = { 'content-type': 'application/octet-stream' }

t.test('Two hundred concurrent uploads never exceed the quota', async (t) => {
  const scene = await openScene(t, { limits: { file_bytes: quota } })
  const { request, idle } = await serve(t, scene)
  await request('POST', '/storage/v1/bucket', { name: 'docs' })
  // Postgres checks at every change, so it sees what is written between two polls.
  await scene.rows(
    `alter table storage_usage add constraint never_over check (file_bytes + reserved_bytes <= ${quota})`,
  )

  const responses = await Promise.all(
    Array.from({ length: uploads }, (_, n) =>
      request('POST', `/storage/v1/object/docs/${n}`, Buffer.alloc(size), binary),
    ),
  )
  const taken = responses.filter(({ status }) => status === 200).length
  const rejected = responses.filter(({ status }) => status === 413)
  t.equal(taken, Math.floor(quota / size), 'as many as fit')
  t.equal(rejected.length, uploads - taken)
  for (const { text } of rejected) t.match(JSON.parse(text), { code: 'QUOTA_EXCEEDED', limit: quota, used: Number })

  const rest = quota - taken * size
  const last = await Promise.all(
    Array.from({ length: uploads }, (_, n) =>
      request('POST', `/storage/v1/object/docs/last-${n}`, Buffer.alloc(rest), binary),
    ),
  )
  t.equal(last.filter(({ status }) => status === 200).length, 1, 'one upload fits into the last bytes')
  t.equal(last.filter(({ status }) => status === 413).length, uploads - 1)
  await idle()
  const [counters] = await scene.rows(
    `select file_bytes::int, reserved_bytes::int as reserved, file_count::int,
      (select sum(size) from storage_objects)::int as bytes from storage_usage`,
  )
  t.same(counters, { file_bytes: quota, reserved: 0, file_count: taken + 1, bytes: quota })
})

t.test('The Free plan has exactly 1 GB for files, which is 1,000,000,000 bytes', async (t) => {
  const gigabyte = 10 ** 9
  const scene = await openScene(t, { limits: { file_bytes: gigabyte } })
  const { request, idle } = await serve(t, scene)
  await request('POST', '/storage/v1/bucket', { name: 'docs' })
  // Pretends that this many bytes are stored.
  await scene.rows(`update storage_usage set file_bytes = ${gigabyte - 2}`)
  const put = (path: string, bytes: number) =>
    request('POST', `/storage/v1/object/docs/${path}`, Buffer.alloc(bytes), binary)
  const tooMuch = await put('three', 3)
  t.equal(tooMuch.status, 413)
  t.match(JSON.parse(tooMuch.text), { code: 'QUOTA_EXCEEDED', limit: gigabyte, used: gigabyte - 2 })
  t.equal((await put('two', 2)).status, 200)
  const full = await put('one', 1)
  t.equal(full.status, 413)
  t.match(JSON.parse(full.text), { code: 'QUOTA_EXCEEDED', limit: gigabyte, used: gigabyte })
  await idle()
  t.same(await scene.rows('select file_bytes::int, reserved_bytes::int from storage_usage'), [
    { file_bytes: gigabyte, reserved_bytes: 0 },
  ])
})
