// Tests of long calls on a real Engine: commands with input and output, logs, cgroup readings and events.
import { createHash, randomBytes } from 'node:crypto'
import t from 'tap'
import type { HostEvent, LogLine } from '#control-plane/engines/container-host.ts'
import { openScene, until } from '#test/support/docker.ts'

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

async function* inParts(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

t.test('a command gets its input, and returns its output, errors and exit code', async (t) => {
  const scene = openScene(t)
  const { host, signal } = scene
  const worker = await scene.run('worker')
  const command = ['sh', '-c', 'cat; echo "$0" "$1" >&2; exit 3', '$(id)', 'a b; "c"']
  t.same(await host.exec(worker, command, { input: 'hello\n', signal }), {
    code: 3,
    stdout: 'hello\n',
    stderr: '$(id) a b; "c"\n',
  })
  t.same(
    await host.exec(worker, ['cat'], { input: '', signal }),
    { code: 0, stdout: '', stderr: '' },
    'empty input ends standard input',
  )
  t.same(
    await host.exec(worker, ['cat'], { signal }),
    { code: 0, stdout: '', stderr: '' },
    'without input, standard input is empty',
  )
  t.match(await host.exec(worker, ['no-such-program'], { signal }), { code: /126|127/ })
})

t.test('a command receives 10 MB of input and returns them', async (t) => {
  const scene = openScene(t)
  const { host, signal } = scene
  const worker = await scene.run('worker')
  const text = randomBytes(5_000_000).toString('hex')
  const { code, stdout } = await host.exec(worker, ['cat'], { input: text, signal })
  t.same({ code, length: stdout.length, same: stdout === text }, { code: 0, length: 10_000_000, same: true })

  const bytes = randomBytes(10_000_000)
  const output: Uint8Array[] = []
  for await (const chunk of host.execStream(worker, ['cat'], { input: inParts(bytes, 70_001), signal }))
    output.push(chunk)
  t.equal(sha256(Buffer.concat(output)), sha256(bytes))
  const hashed = await host.exec(worker, ['sha256sum'], { input: inParts(bytes, 1_000_003), signal })
  t.equal(hashed.stdout, `${sha256(bytes)}  -\n`)
})

t.test('unread input is no error, and output over its limit is', async (t) => {
  const scene = openScene(t)
  const { host, signal } = scene
  const worker = await scene.run('worker')
  const bytes = randomBytes(10_000_000)
  t.match(await host.exec(worker, ['sh', '-c', 'exit 5'], { input: inParts(bytes, 65_536), signal }), { code: 5 })
  await t.rejects(host.exec(worker, ['cat', '/dev/zero'], { maxOutputBytes: 100_000, signal }), {
    code: 'ENGINE_FAILED',
    message: /exceeds 100000 bytes/,
  })
  const noisy = await host.exec(worker, ['sh', '-c', 'head -c 1000000 /dev/zero | tr "\\\\0" x >&2; echo end >&2'], {
    signal,
  })
  t.equal(noisy.stderr.length, 64 * 1024)
  t.equal(noisy.stderr.slice(-6), 'xxend\n', 'the end of standard error is retained')
})

t.test('an error of the input ends the command with that error', async (t) => {
  const scene = openScene(t)
  const { host, signal } = scene
  const worker = await scene.run('worker')
  const broken = new Error('the backup is cut off')
  async function* input(): AsyncGenerator<Uint8Array> {
    yield randomBytes(1000)
    throw broken
  }
  await t.rejects(host.exec(worker, ['cat'], { input: input(), signal }), broken)
})

t.test('a stream of output ends with an error when its command fails', async (t) => {
  const scene = openScene(t)
  const { host, signal } = scene
  const worker = await scene.run('worker')
  const seen: string[] = []
  const drain = async () => {
    for await (const chunk of host.execStream(worker, ['sh', '-c', 'echo part; echo "disk gone" >&2; exit 9'], {
      signal,
    }))
      seen.push(Buffer.from(chunk).toString())
  }
  await t.rejects(drain(), { code: 'ENGINE_FAILED', message: `Cannot run sh in ${worker}: exit code 9: disk gone` })
  t.same(seen, ['part\n'])
})

t.test('a call ends when its caller aborts it', async (t) => {
  const scene = openScene(t)
  const worker = await scene.run('worker')
  const { host } = scene
  const caller = new AbortController()
  const reason = new Error('aborted')
  const waiting = host.exec(worker, ['sh', '-c', 'echo started > /dev/null; sleep 600'], { signal: caller.signal })
  const processes = async () =>
    (await host.exec(worker, ['sh', '-c', 'cat /proc/[0-9]*/cmdline'], { signal: scene.signal })).stdout
  await until(async () => ((await processes()).includes('echo started') ? true : undefined))
  caller.abort(reason)
  await t.rejects(waiting, reason)
  await t.rejects(host.exec(worker, ['true'], { signal: caller.signal }), reason, 'an aborted signal starts no command')
  for await (const chunk of host.execStream(worker, ['yes'], { signal: scene.signal })) {
    t.match(Buffer.from(chunk).toString(), /^y\n/)
    break
  }
})

t.test('a command in a container that does not run is rejected', async (t) => {
  const scene = openScene(t)
  const { host, signal } = scene
  const spec = scene.container('worker')
  await host.createContainer(spec, signal)
  await t.rejects(host.exec(spec.name, ['true'], { signal }), {
    code: 'ENGINE_FAILED',
    message: `Cannot run true in ${spec.name}: it is not running.`,
  })
  await t.rejects(host.exec(scene.name('missing'), ['true'], { signal }), { code: 'NOT_FOUND' })
})

async function all(lines: AsyncIterable<LogLine>): Promise<LogLine[]> {
  const found: LogLine[] = []
  for await (const line of lines) found.push(line)
  return found
}

t.test('a log is read line by line, from its end or from a time', async (t) => {
  const scene = openScene(t)
  const { host, signal } = scene
  const script =
    'for i in 1 2 3; do echo "out $i"; sleep 0.05; echo "err $i" >&2; sleep 0.05; done; ' +
    'head -c 40000 /dev/zero | tr "\\\\0" x; echo; echo; printf unfinished; exec sleep 600'
  const worker = await scene.run('worker', { command: ['sh', '-c', script] })
  const read = (tail: number, since?: string) =>
    all(host.logs(worker, { follow: false, tail, ...(since === undefined ? {} : { since }) }, signal))
  const lines = await until(async () => {
    const found = await read(100)
    return found.length === 8 || found.at(-1)?.text === '' ? found : undefined
  })
  t.same(
    lines.slice(0, 6).map(({ stream, text }) => `${stream}: ${text}`),
    ['stdout: out 1', 'stderr: err 1', 'stdout: out 2', 'stderr: err 2', 'stdout: out 3', 'stderr: err 3'],
  )
  t.equal(lines[6]?.text.length, 40_000, 'a very long line stays one line')
  for (const { at } of lines) t.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/)
  const third = lines[3]
  t.same(
    (await read(100, third?.at)).map(({ text }) => text).slice(0, 3),
    ['err 2', 'out 3', 'err 3'],
    'the first line is the one at the given time',
  )
  t.same((await read(0)).length, 0)
  const last = await read(1)
  t.ok(last.length === 1)
  await t.rejects(read(1, 'yesterday'), { code: 'ENGINE_FAILED' })
  await t.rejects(all(host.logs(scene.name('missing'), { follow: false, tail: 1 }, signal)), { code: 'NOT_FOUND' })
})

t.test('a log is followed until the container ends, or the caller stops', async (t) => {
  const scene = openScene(t)
  const { host, signal } = scene
  const worker = await scene.run('worker', { command: ['sh', '-c', 'echo ready; exec sleep 600'] })
  const seen: string[] = []
  for await (const { text } of host.logs(worker, { follow: true, tail: 100 }, signal)) {
    if (seen.push(text) === 1)
      await host.exec(worker, ['sh', '-c', 'echo once > /proc/1/fd/1; echo twice > /proc/1/fd/2'], { signal })
    if (seen.includes('twice') && seen.includes('once')) break
  }
  t.ok(seen.includes('ready'))

  const caller = new AbortController()
  const followed = all(host.logs(worker, { follow: true, tail: 0 }, caller.signal))
  const reason = new Error('enough')
  setTimeout(() => caller.abort(reason), 100)
  await t.rejects(followed, reason)

  const toTheEnd = all(host.logs(worker, { follow: true, tail: 100 }, signal))
  await host.stopContainer(worker, 0, signal)
  t.ok((await toTheEnd).some(({ text }) => text === 'ready'))
})

t.test('readings show the CPU time and memory that a container uses', async (t) => {
  const scene = openScene(t)
  const { host, signal } = scene
  const [idle, busy, full] = [
    await scene.run('idle'),
    await scene.run('busy', { command: ['sh', '-c', 'while :; do :; done'] }),
    await scene.run('full', {
      command: ['sh', '-c', 'head -c 30000000 /dev/zero | tail -c 30000000 | (sleep 600; cat)'],
    }),
  ]
  const first = await host.stats(busy, signal)
  const later = await until(async () => {
    const reading = await host.stats(busy, signal)
    return reading.cpuNanoseconds > first.cpuNanoseconds + 200_000_000 ? reading : undefined
  })
  const still = await host.stats(idle, signal)
  t.ok(still.cpuNanoseconds < later.cpuNanoseconds, 'the idle container used less')
  const grown = await until(async () => {
    const reading = await host.stats(full, signal)
    return reading.memoryBytes > 28_000_000 ? reading : undefined
  })
  t.ok(grown.memoryBytes < 64 * 1024 * 1024)
  t.ok(still.memoryBytes < 10_000_000)
  await host.stopContainer(busy, 0, signal)
  t.same(await host.stats(busy, signal), { cpuNanoseconds: 0, memoryBytes: 0 }, 'a stopped container uses nothing')
  await t.rejects(host.stats(scene.name('missing'), signal), { code: 'NOT_FOUND' })
})

t.test('readings exclude the page cache', async (t) => {
  const scene = openScene(t)
  const { host, labels, signal, name } = scene
  await host.createVolume({ name: name('data'), labels }, signal)
  const worker = await scene.run('worker', {
    user: '0:0',
    volumes: [{ volume: name('data'), path: '/data', readOnly: false }],
  })
  await host.exec(worker, ['sh', '-c', 'head -c 40000000 /dev/zero > /data/file; sync; cat /data/file > /dev/null'], {
    signal,
  })
  t.ok((await host.stats(worker, signal)).memoryBytes < 25_000_000)
})

t.test('events name the stack of each changed container, network and volume', async (t) => {
  const scene = openScene(t)
  const { host, rawDocker, labels, owned, signal, name, stack } = scene
  const foreignScene = openScene(t)
  const before = scene.network('before')
  await host.createNetwork(before, signal)
  const caller = new AbortController()
  const seen: HostEvent[] = []
  const following = (async () => {
    for await (const event of host.events({ installation: scene.installation }, caller.signal)) seen.push(event)
  })()
  const happened = (what: string) =>
    until(async () => (seen.some((event) => event.stack === stack && event.what === what) ? true : undefined))
  await until(async () => {
    await host.createVolume({ name: name('probe'), labels }, signal)
    await host.removeVolume(name('probe'), owned, signal)
    return seen.length > 0 ? true : undefined
  })

  await foreignScene.run('worker')
  const worker = await scene.run('worker', {
    health: { command: ['true'], intervalSeconds: 1, timeoutSeconds: 5, retries: 1, startSeconds: 0 },
  })
  await happened('container create')
  await happened('container start')
  await happened('container health_status: healthy')
  await rawDocker.getContainer(worker).pause()
  await happened('container pause')
  await host.unpauseContainer(worker, signal)
  await rawDocker.getContainer(worker).kill({ signal: 'KILL' })
  await happened('container die')
  await host.removeContainer(worker, owned, signal)
  await happened('container destroy')

  const after = scene.network('after')
  await host.createNetwork(after, signal)
  await happened('network create')
  for (const network of [before, after]) {
    seen.length = 0
    const attached = await scene.run('attached', { networks: [{ network: network.name, aliases: [] }] })
    await happened('network connect')
    await rawDocker.getNetwork(network.name).disconnect({ Container: attached, Force: true })
    await happened('network disconnect')
    await host.removeContainer(attached, owned, signal)
    await host.removeNetwork(network.name, owned, signal)
    await happened('network destroy')
  }
  await host.createVolume({ name: name('data'), labels }, signal)
  await happened('volume create')
  await rawDocker.getVolume(name('data')).remove()
  await happened('volume destroy')
  t.same([...new Set(seen.map((event) => event.stack))], [stack], 'no events of other installations')
  t.notOk(
    seen.some(({ what }) => what.includes('exec')),
    'no events of health checks',
  )

  const reason = new Error('enough')
  caller.abort(reason)
  await t.rejects(following, reason)
})
