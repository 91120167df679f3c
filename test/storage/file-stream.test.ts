// Streams a file to a socket: every byte once and in order at any speed of the reader, and no open file after the
// reader leaves.
import t from 'tap'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, open, rm, truncate, writeFile, type FileHandle } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { BufferRoom, FileStream } from '#tenant-runtime/storage/backend/file-stream.ts'

const megabyte = 1024 * 1024
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

t.test('A file as a stream', { timeout: 60_000 }, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-stream-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const bytes = randomBytes(5 * megabyte + 321)
  const file = join(directory, 'file')
  await writeFile(file, bytes)
  const closed = async (handle: FileHandle) => {
    while (handle.fd !== -1) await new Promise(setImmediate)
  }

  /**
   * Takes each chunk some turns later and copies it only then, which detects a buffer that was refilled in the
   * meantime.
   */
  const slowSink = () => {
    const taken: Buffer[] = []
    const sink = new Writable({
      highWaterMark: 1,
      write(chunk: Buffer, _encoding, done) {
        setImmediate(() =>
          setImmediate(() => {
            taken.push(Buffer.from(chunk))
            done()
          }),
        )
      },
    })
    return { sink, taken: () => Buffer.concat(taken) }
  }

  for (const [name, room] of [
    ['large buffers', 64 * megabyte],
    ['small buffers, with no room for others', 0],
  ] as const) {
    t.test(`A file is piped whole and in part through ${name}`, async (t) => {
      for (const [start, end] of [
        [0, bytes.length - 1],
        [7, 7],
        [megabyte - 1, 3 * megabyte],
        [bytes.length - 10, bytes.length - 1],
      ] as const) {
        const handle = await open(file)
        const gone = closed(handle)
        const { sink, taken } = slowSink()
        const finished = once(sink, 'finish')
        new FileStream(handle, start, end, new BufferRoom(room)).pipe(sink)
        await Promise.all([finished, gone])
        t.equal(sha256(taken()), sha256(bytes.subarray(start, end + 1)), `${start}-${end}`)
      }
    })
  }

  t.test('Streams that use the same buffers one after the other and together send their own bytes', async (t) => {
    const room = new BufferRoom(8 * megabyte)
    const other = join(directory, 'other')
    const otherBytes = randomBytes(3 * megabyte)
    await writeFile(other, otherBytes)
    const sent = async (path: string, expected: Buffer) => {
      const { sink, taken } = slowSink()
      const finished = once(sink, 'finish')
      new FileStream(await open(path), 0, expected.length - 1, room).pipe(sink)
      await finished
      return sha256(taken()) === sha256(expected)
    }
    const abandoned = async () => {
      const stream = new FileStream(await open(file), 0, bytes.length - 1, room)
      const { sink, taken } = slowSink()
      stream.pipe(sink)
      while (taken().length === 0) await new Promise(setImmediate)
      stream.destroy()
    }
    for (let round = 0; round < 5; round++) {
      const [isFirst, isSecond] = await Promise.all([sent(file, bytes), sent(other, otherBytes), abandoned()])
      t.ok(isFirst)
      t.ok(isSecond)
    }
    t.equal(room.take(8)?.length, 8, 'all buffers were returned')
  })

  t.test('A file is iterated in chunks that the reader may retain', async (t) => {
    const chunks: Buffer[] = []
    for await (const chunk of new FileStream(
      await open(file),
      5,
      bytes.length - 6,
      new BufferRoom(0),
    ) as AsyncIterable<Buffer>)
      chunks.push(chunk)
    t.equal(sha256(Buffer.concat(chunks)), sha256(bytes.subarray(5, -5)))
  })

  t.test(
    'A stream releases its buffer and its file when the reader leaves and when the file is shorter than expected',
    async (t) => {
      const room = new BufferRoom(2 * megabyte)
      const isFree = () => {
        const free = room.take(2)
        if (free !== undefined) room.release(2)
        return free !== undefined
      }
      const served: Promise<unknown>[] = []
      const server = createServer((_request, response) => {
        void open(file).then((handle) => {
          served.push(closed(handle))
          const stream = new FileStream(handle, 0, bytes.length - 1, room)
          stream.on('error', () => response.destroy())
          response.on('close', () => stream.destroy())
          stream.pipe(response)
        })
      })
      t.teardown(() => server.close())
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const address = server.address()
      const request = () => {
        const socket = connect({ host: '127.0.0.1', port: typeof address === 'object' ? (address?.port ?? 0) : 0 })
        socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
        return socket
      }
      const leaving = request()
      await once(leaving, 'readable')
      t.notOk(isFree(), 'in use')
      leaving.destroy()
      while (served.length === 0) await new Promise(setImmediate)
      await served[0]
      while (!isFree()) await new Promise(setImmediate)

      await truncate(file, 2 * megabyte)
      const cut = request().resume()
      await once(cut, 'close')
      await served[1]
      while (!isFree()) await new Promise(setImmediate)
      t.equal(served.length, 2)
    },
  )
})
