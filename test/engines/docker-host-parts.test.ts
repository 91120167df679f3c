// Tests of the functions that need no Engine: frames, log lines, readings and inspections, in the formats of old and new Engines.
import fc from 'fast-check'
import t from 'tap'
import type Dockerode from 'dockerode'
import { containerBody } from '#control-plane/engines/docker-container-body.ts'
import { demultiplex, type Chunk } from '#control-plane/engines/docker/frames.ts'
import { readLines } from '#control-plane/engines/docker/logs.ts'
import { observedContainer, observedNetwork } from '#control-plane/engines/docker/observed.ts'
import { readStats } from '#control-plane/engines/docker/stats.ts'
import { seed } from '#test/support/effort.ts'

type Stream = Chunk['stream']

function frame(stream: Stream, text: string | Buffer): Buffer {
  const payload = Buffer.from(text)
  const header = Buffer.alloc(8)
  header[0] = stream === 'stdout' ? 1 : 2
  header.writeUInt32BE(payload.length, 4)
  return Buffer.concat([header, payload])
}

async function* cutAt(bytes: Buffer, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  let from = 0
  for (const cut of [...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
    yield bytes.subarray(from, cut)
    from = cut
  }
}

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of source) all.push(item)
  return all
}

t.test('frames are separated for any chunks of the connection', async (t) => {
  const stream = fc.constantFrom<Stream>('stdout', 'stderr')
  const frames = fc.array(fc.tuple(stream, fc.uint8Array({ maxLength: 40 })), { maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(frames, fc.array(fc.nat(), { maxLength: 12 }), async (sent, cuts) => {
      const bytes = Buffer.concat(sent.map(([stream, payload]) => frame(stream, Buffer.from(payload))))
      const chunks = await collect(demultiplex(cutAt(bytes, cuts)))
      const of = (wanted: Stream) =>
        Buffer.concat(chunks.filter((chunk) => chunk.stream === wanted).map((chunk) => chunk.bytes)).toString('hex')
      for (const wanted of ['stdout', 'stderr'] as const) {
        if (
          of(wanted) !==
          Buffer.concat(sent.filter(([stream]) => stream === wanted).map(([, payload]) => payload)).toString('hex')
        )
          return false
      }
      return chunks.filter(({ isLast }) => isLast).length === sent.filter(([, payload]) => payload.length > 0).length
    }),
    { seed },
  )
  t.same(await collect(demultiplex(cutAt(Buffer.alloc(0), []))), [])
})

t.test('a truncated or invalid stream of frames is an error', async (t) => {
  const whole = frame('stdout', 'text')
  for (const length of [1, 7, 8, 11])
    await t.rejects(
      collect(demultiplex(cutAt(whole.subarray(0, length), []))),
      { code: 'ENGINE_UNREACHABLE' },
      `${length} bytes`,
    )
  await t.rejects(collect(demultiplex(cutAt(Buffer.from('plain text, no frames'), []))), { code: 'ENGINE_FAILED' })
  const huge = frame('stdout', '')
  huge.writeUInt32BE(0xffffffff, 4)
  const [first] = await collect(demultiplex(cutAt(Buffer.concat([huge, Buffer.from('abc')]), []))).catch(() => [])
  t.equal(first, undefined)
})

t.test('log lines are assembled from their frames', async (t) => {
  const at = (second: number) => `2026-01-02T03:04:0${second}.000000000Z`
  const letter = Buffer.from('ü')
  const sent = Buffer.concat([
    frame('stdout', Buffer.concat([Buffer.from(`${at(1)} one `), letter.subarray(0, 1)])),
    frame('stderr', `${at(2)} other\n`),
    frame('stdout', Buffer.concat([Buffer.from(`${at(3)} `), letter.subarray(1), Buffer.from(' end\n')])),
    frame('stdout', `${at(4)} \n`),
    frame('stdout', `${at(5)} not at its end`),
  ])
  t.same(await collect(readLines(demultiplex(cutAt(sent, [1, 5, 9, 30, 31, 50])))), [
    { at: at(2), stream: 'stderr', text: 'other' },
    { at: at(1), stream: 'stdout', text: 'one ü end' },
    { at: at(4), stream: 'stdout', text: '' },
    { at: at(5), stream: 'stdout', text: 'not at its end' },
  ])
  const endless = Buffer.concat(Array.from({ length: 40 }, () => frame('stdout', `${at(1)} ${'x'.repeat(16_384)}`)))
  const lines = await collect(readLines(demultiplex(cutAt(endless, []))))
  t.same(
    lines.map(({ text }) => text.length),
    [262_144, 262_144, 131_072],
    'a line without end is returned in parts',
  )
  await t.rejects(collect(readLines(demultiplex(cutAt(frame('stdout', 'notime\n'), [])))), { code: 'ENGINE_FAILED' })
})

t.test('readings of cgroup v1 and v2 give the same fields', (t) => {
  const cpu_stats = { cpu_usage: { total_usage: 123 } }
  t.same(readStats({ cpu_stats, memory_stats: { usage: 1000, stats: { total_inactive_file: 300 } } }), {
    cpuNanoseconds: 123,
    memoryBytes: 700,
  })
  t.same(readStats({ cpu_stats, memory_stats: { usage: 1000, stats: { inactive_file: 400 } } }), {
    cpuNanoseconds: 123,
    memoryBytes: 600,
  })
  t.same(readStats({ cpu_stats, memory_stats: { usage: 100, stats: { inactive_file: 400 } } }), {
    cpuNanoseconds: 123,
    memoryBytes: 0,
  })
  t.same(readStats({}), { cpuNanoseconds: 0, memoryBytes: 0 })
  t.end()
})

const id = 'abcdef0123456789'.repeat(4)
const labels = { 'tenantry.installation': 'i', 'tenantry.stack': 's' }

function inspection(state: object, networks: object): Dockerode.ContainerInspectInfo {
  return {
    Id: id,
    Name: '/c',
    Image: 'sha256:1',
    RestartCount: 2,
    Config: { Labels: labels },
    HostConfig: { RestartPolicy: { Name: 'unless-stopped', MaximumRetryCount: 0 } },
    State: { Status: 'running', ExitCode: 0, OOMKilled: false, StartedAt: '0001-01-01T00:00:00Z', ...state },
    NetworkSettings: { Networks: networks },
  } as unknown as Dockerode.ContainerInspectInfo
}

t.test('inspections of old and new Engines give the same container', (t) => {
  const old = {
    net: {
      NetworkID: 'n1',
      IPAddress: '',
      Aliases: ['worker', id.slice(0, 12)],
      IPAMConfig: { IPv4Address: '10.0.0.9' },
    },
  }
  const recent = {
    net: {
      NetworkID: 'n1',
      IPAddress: '10.0.0.9',
      Aliases: ['worker'],
      DNSNames: ['c', 'worker', id.slice(0, 12)],
      IPAMConfig: null,
    },
  }
  for (const networks of [old, recent]) {
    t.same(observedContainer(inspection({}, networks), new Map([['net', 'n1']])), {
      id,
      name: 'c',
      labels: { installation: 'i', stack: 's' },
      state: 'running',
      health: 'none',
      exitCode: 0,
      startedAt: undefined,
      restarts: 2,
      outOfMemory: false,
      imageId: 'sha256:1',
      resources: { memoryBytes: 0, cpuMillis: 0, pids: 0 },
      restartPolicy: 'unless-stopped',
      networks: { net: { aliases: ['worker'], address: '10.0.0.9' } },
    })
  }
  t.match(observedContainer(inspection({ Health: { Status: 'none' } }, {}), new Map())?.health, 'none')
  t.match(
    observedContainer(inspection({ Status: 'stopping' }, {}), new Map())?.state,
    'dead',
    'an unknown state counts as dead',
  )
  t.match(
    observedContainer(
      inspection({}, { net: { NetworkID: 'n1', IPAddress: '', Aliases: null } }),
      new Map([['net', 'n1']]),
    ),
    { networks: { net: { aliases: [], address: '' } } },
  )
  t.end()
})

t.test('objects without Tenantry’s labels are not observed', (t) => {
  for (const Labels of [null, undefined, {}, { 'tenantry.installation': 'i' }, { 'tenantry.stack': 's' }]) {
    const found = inspection({}, {})
    t.equal(
      observedContainer({ ...found, Config: { ...found.Config, Labels: Labels as Record<string, string> } }, new Map()),
      undefined,
    )
    t.equal(
      observedNetwork({ Id: 'n', Name: 'n', Internal: true, Labels } as Dockerode.NetworkInspectInfo, new Map()),
      undefined,
    )
  }
  t.match(
    observedNetwork(
      { Id: 'n', Name: 'n', Internal: true, Labels: labels } as unknown as Dockerode.NetworkInspectInfo,
      new Map([
        ['c', '10.0.0.2'],
        ['stopped', ''],
      ]),
    ),
    { subnet: '', members: ['c', 'stopped'], addresses: { c: '10.0.0.2', stopped: undefined } },
  )
  t.end()
})

t.test("a container without networks is on no network, not on the Engine's default", (t) => {
  const body = containerBody({
    name: 'c',
    labels: { installation: 'i', stack: 's' },
    image: 'i',
    command: ['run'],
    environment: {},
    user: '1',
    volumes: [],
    scratch: {},
    networks: [],
    published: [],
    health: { command: ['true'], intervalSeconds: 1, timeoutSeconds: 1, retries: 1, startSeconds: 0 },
    resources: { memoryBytes: 1, cpuMillis: 1, pids: 1 },
    stopSeconds: 1,
  })
  t.equal(body.HostConfig?.NetworkMode, 'none')
  t.equal(body.NetworkingConfig, undefined)
  t.end()
})
