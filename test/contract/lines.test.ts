// Lines of other programs' output: split as they arrive, with no more in memory than the limit.
import t from 'tap'
import { LineSplitter, linesOf } from '#contract/lines.ts'
import { ownEvents } from '#docker-proxy/event-stream.ts'
import { linesOf as backupLines } from '#control-plane/backups/lines.ts'

function split(maxBytes: number, chunks: readonly (string | Buffer)[]): string[] {
  const splitter = new LineSplitter(maxBytes)
  const lines = [
    ...chunks.flatMap((chunk) => [...splitter.push(Buffer.from(chunk))]),
    ...[splitter.end()].filter((line) => line !== undefined),
  ]
  return lines.map(({ bytes, isCut }) => `${bytes.toString('latin1')}${isCut ? '…' : ''}`)
}

t.test('Lines are the same for every division of their bytes into chunks', async (t) => {
  const text = 'one\n\nthree\r\n0123456789\n0123456789a\nx'
  const wanted = ['one', '', 'three\r', '0123456789', '0123456789…', 'x']
  for (let size = 1; size <= text.length; size++) {
    const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
      text.slice(index * size, (index + 1) * size),
    )
    t.same(split(10, chunks), wanted, `chunks of ${size} bytes`)
  }
})

t.test('A line that is too long is cut at once, and the next one is whole', async (t) => {
  t.same(split(4, ['12345678', '9', '0\nab', 'c\n']), ['1234…', 'abc'])
  t.same(split(4, ['1234', '5']), ['1234…'], 'a line that never ends')
  t.same(split(4, [Buffer.from([0xff, 0x00, 0xfe, 0x0a])]), ['\xff\0\xfe'], 'bytes that are not text')
})

async function* chunks(count: number, chunk: Buffer): AsyncGenerator<Buffer, undefined> {
  for (let n = 0; n < count; n++) yield chunk
}

async function drain(lines: AsyncIterable<string>): Promise<number> {
  let count = 0
  for await (const line of lines) count += line.length
  return count
}

t.test('A stream with a line that is too long ends before it fills the memory', async (t) => {
  const mebibyte = Buffer.alloc(1024 * 1024, 'x')
  await t.rejects(drain(linesOf(chunks(2, mebibyte), 1024 * 1024)), { message: 'A line is longer than 1048576 bytes.' })
  let read = 0
  async function* endless(): AsyncGenerator<Buffer, undefined> {
    for (; read < 2_000; read++) yield mebibyte
  }
  await t.rejects(drain(backupLines(endless())), { message: /A line is longer than 67108864 bytes/ })
  t.ok(read <= 65, 'the stream is not read to its end')
  const rules = {
    installation: 'i',
    attachedContainers: [],
    images: [],
    networkRange: { first: 0, size: 1 },
    published: [],
  } as unknown as Parameters<typeof ownEvents>[1]
  await t.rejects(drain(ownEvents(chunks(2, mebibyte), rules)), {
    message: 'The Docker Engine sent an event of more than 1 MiB.',
  })
})
