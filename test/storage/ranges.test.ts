// Ranges of an object as RFC 9110 defines them: one, several, unsatisfiable ones, and ignored headers.
import fc from 'fast-check'
import t from 'tap'
import { readRange } from '#tenant-runtime/storage/objects/conditional.ts'
import { startRuntime, type ApiResponse } from '#test/support/runtime.ts'
import { effort, seed } from '#test/support/effort.ts'

const validators = { etag: 'e', modified: new Date('2026-01-01T00:00:00Z') }

/** Returns the parts of a `multipart/byteranges` body. */
function partsOf({ headers, bytes }: ApiResponse): { range: string; type: string; bytes: Buffer }[] {
  const boundary = /^multipart\/byteranges; boundary=(\S+)$/.exec(String(headers['content-type']))?.[1]
  if (boundary === undefined) throw new Error(`content-type: ${String(headers['content-type'])}`)
  const chunks = bytes.toString('latin1').split(`\r\n--${boundary}`)
  if (chunks.shift() !== '' || chunks.pop() !== '--\r\n') throw new Error('the body has no beginning or no end')
  return chunks.map((chunk) => {
    const at = chunk.indexOf('\r\n\r\n')
    const head = Object.fromEntries(
      chunk
        .slice(2, at)
        .split('\r\n')
        .map((line) => line.split(': ') as [string, string]),
    )
    return {
      range: head['content-range'] ?? '',
      type: head['content-type'] ?? '',
      bytes: Buffer.from(chunk.slice(at + 4), 'latin1'),
    }
  })
}

t.test('Range headers', async (t) => {
  const cases: [header: string, size: number, expected: unknown][] = [
    ['bytes=0-0', 10, [[0, 0]]],
    ['bytes=-1', 10, [[9, 9]]],
    ['bytes=5-', 10, [[5, 9]]],
    ['bytes=0-999', 10, [[0, 9]]],
    ['bytes=-999', 10, [[0, 9]]],
    [
      'bytes=0-1,4-5',
      10,
      [
        [0, 1],
        [4, 5],
      ],
    ],
    [
      'bytes=4-5, 0-1',
      10,
      [
        [4, 5],
        [0, 1],
      ],
    ],
    [
      'bytes= 0-1 , -2',
      10,
      [
        [0, 1],
        [8, 9],
      ],
    ],
    ['bytes=0-1,20-30', 10, [[0, 1]]],
    ['bytes=10-', 10, 'unsatisfiable'],
    ['bytes=-0', 10, 'unsatisfiable'],
    ['bytes=20-,30-40', 10, 'unsatisfiable'],
    ['bytes=0-', 0, 'unsatisfiable'],
    ['bytes=0-5,3-8', 10, 'whole'],
    ['bytes=0-1,1-2', 10, 'whole'],
    ['bytes=', 10, 'whole'],
    ['bytes=-', 10, 'whole'],
    ['bytes=a-b', 10, 'whole'],
    ['bytes=5-1', 10, 'whole'],
    ['bytes=0-1,', 10, 'whole'],
    ['items=0-1', 10, 'whole'],
    [`bytes=${Array.from({ length: 33 }, (_, n) => `${n * 2}-${n * 2}`).join()}`, 100, 'whole'],
    ['bytes=0-99999999999999999999', 10, 'whole'],
  ]
  for (const [header, size, wanted] of cases) {
    const response = readRange({ range: header }, size, validators)
    t.same(
      response.kind === 'parts' ? response.parts.map(({ start, end }) => [start, end]) : response.kind,
      wanted,
      header,
    )
  }
  t.equal(readRange({ range: 'bytes=0-1', 'if-range': '"other"' }, 10, validators).kind, 'whole')
  t.equal(readRange({ range: 'bytes=0-1', 'if-range': 'W/"e"' }, 10, validators).kind, 'whole')
  t.equal(
    readRange({ range: 'bytes=0-1', 'if-range': validators.modified.toUTCString() }, 10, validators).kind,
    'whole',
    'two versions can have the same second',
  )
  t.equal(readRange({ range: 'bytes=0-1', 'if-range': '"e"' }, 10, validators).kind, 'parts')
})

t.test('Ranges over HTTP', async (t) => {
  const tenant = await (await startRuntime(t)).addTenant()
  await tenant.request('POST', '/storage/v1/bucket', { as: 'ada', body: { name: 'files' } })
  const content = Buffer.from(Array.from({ length: 300_000 }, (_, n) => (n * 31) % 251))
  await tenant.request('POST', '/storage/v1/object/files/a.bin', {
    as: 'ada',
    body: content,
    headers: { 'content-type': 'image/png' },
  })
  const get = (range: string, method = 'GET') =>
    tenant.request(method, '/storage/v1/object/files/a.bin', { as: 'ada', headers: { range } })

  t.test('Several ranges are returned in the requested order, byte for byte', async (t) => {
    const cuts = fc.uniqueArray(fc.nat(content.length), { minLength: 4, maxLength: 16 }).map((points) => {
      const sorted = points.sort((a, b) => a - b)
      return Array.from({ length: Math.floor(sorted.length / 2) }, (_, n) => ({
        start: sorted[2 * n] ?? 0,
        end: (sorted[2 * n + 1] ?? 1) - 1,
      }))
    })
    await fc.assert(
      fc.asyncProperty(cuts, fc.boolean(), async (parts, turned) => {
        const requested = turned ? parts.toReversed() : parts
        const response = await get(`bytes=${requested.map(({ start, end }) => `${start}-${end}`).join(', ')}`)
        if (response.status !== 206 || Number(response.headers['content-length']) !== response.bytes.length)
          throw new Error(`${response.status}, ${response.bytes.length} bytes`)
        return partsOf(response).every(({ range, type, bytes }, index) => {
          const { start, end } = requested[index] ?? { start: -1, end: -1 }
          return (
            range === `bytes ${start}-${end}/${content.length}` &&
            type === 'image/png' &&
            bytes.equals(content.subarray(start, end + 1))
          )
        })
      }),
      { seed, numRuns: effort({ small: 40, full: 1_000 }) },
    )
    t.pass()
  })

  t.test('HEAD ignores ranges; an unsatisfiable range is 416 with the size; invalid headers are ignored', async (t) => {
    for (const range of ['bytes=0-1', 'bytes=0-1,4-5', 'bytes=300000-']) {
      const head = await get(range, 'HEAD')
      t.match(
        [head.status, head.headers['content-type'], head.headers['content-length'], head.bytes.length],
        [200, 'image/png', '300000', 0],
      )
    }
    const outside = await get('bytes=300000-,400000-')
    t.match(
      [outside.status, outside.headers['content-range'], outside.json()['code']],
      [416, 'bytes */300000', 'RANGE_NOT_SATISFIABLE'],
    )
    const overlapping = await get('bytes=0-10,5-20')
    t.match([overlapping.status, overlapping.bytes.length], [200, content.length])
  })

  t.test('An object that is overwritten during a download is sent in its former version', async (t) => {
    const large = Buffer.alloc(20_000_000, 1)
    await tenant.request('POST', '/storage/v1/object/files/large.bin', {
      as: 'ada',
      body: large,
      headers: { 'content-type': 'image/png' },
    })
    const reading = tenant.request('GET', '/storage/v1/object/files/large.bin', {
      as: 'ada',
      headers: { range: 'bytes=0-9999999,10000001-19999999' },
    })
    const writing = tenant.request('POST', '/storage/v1/object/files/large.bin', {
      as: 'ada',
      body: Buffer.alloc(20_000_000, 2),
      headers: { 'content-type': 'image/png' },
    })
    const response = await reading
    await writing
    const bytes = new Set(partsOf(response).flatMap((part) => [...new Set(part.bytes)]))
    t.equal(bytes.size, 1, 'one version')
  })
})
