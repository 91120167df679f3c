// Starts a second Docker Engine as on another host: in its own network namespace, connected by one virtual cable.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { engineAddress } from './docker.ts'
import { makeAuthority } from './tls.ts'

const run = promisify(execFile)
const startMilliseconds = 60_000
const stopMilliseconds = 30_000

export interface RemoteEngine {
  /** Address of the engine, `tcp://…`. Client and engine authenticate with certificates. */
  host: string
  tlsDirectory: string
  /** Addresses of the cable's two ends. `link` is the name of the cable's interface on the other host. */
  here: string
  there: string
  link: string
  /** Runs a program on the other host, with its engine as `DOCKER_HOST`. @returns the trimmed output */
  shell(program: string, ...args: string[]): Promise<string>
  /** Routes a network of this host to the other host. */
  route(cidr: string): Promise<void>
  /** An address of this host that the other host reaches by its default route, like any address on the internet. */
  world: string
}

/** Starts the engine, which needs root. The end of the test removes it. */
export async function startRemoteEngine(t: Test): Promise<RemoteEngine> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-remote-'))
  const name = `tr${randomBytes(4).toString('hex')}`
  const [near, link] = [`${name}n`, `${name}f`]
  const net = `198.18.${randomInt(256)}`
  const [here, there] = [`${net}.1`, `${net}.2`]
  const world = `198.51.100.${randomInt(1, 255)}`
  const ip = (...args: string[]) => run('ip', args)
  const inside = (...args: string[]) => [`--net=/run/netns/${name}`, '--', ...args]
  const running: ChildProcess[] = []
  t.teardown(async () => {
    for (const child of running.toReversed()) await end(child)
    for (const point of await mountsBelow(directory)) await run('umount', [point])
    await ip('netns', 'delete', name)
    await rm(directory, { recursive: true })
  })

  await ip('netns', 'add', name)
  await ip('link', 'add', near, 'type', 'veth', 'peer', 'name', link, 'netns', name)
  await ip('address', 'add', `${here}/30`, 'dev', near)
  await ip('address', 'add', `${world}/32`, 'dev', near)
  await ip('link', 'set', near, 'up')
  for (const args of [
    ['address', 'add', `${there}/30`, 'dev', link],
    ['link', 'set', link, 'up'],
    ['link', 'set', 'lo', 'up'],
    ['route', 'add', 'default', 'via', here],
  ]) {
    await ip('-n', name, ...args)
  }

  const at = (file: string) => join(directory, file)
  const authority = await makeAuthority(at('authority'))
  const { cert, key } = await authority.issue(`IP:${there}`)
  await mkdir(at('server'))
  await Promise.all([
    writeFile(at('server/ca.pem'), authority.certificate),
    writeFile(at('server/cert.pem'), cert),
    writeFile(at('server/key.pem'), key),
    writeFile(at('daemon.json'), '{}\n'),
    writeFile(at('containerd.toml'), 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n'),
  ])
  const start = async (program: string, args: string[], isReady: () => Promise<boolean>) => {
    const log = await open(at(`${program}.log`), 'w')
    const child = spawn('nsenter', inside(program, ...args), { cwd: '/', stdio: ['ignore', log.fd, log.fd] })
    running.push(child)
    await log.close()
    const deadline = Date.now() + startMilliseconds
    while (!(await isReady())) {
      if (child.exitCode !== null || Date.now() > deadline)
        throw new Error(`${program} did not start:\n${(await readFile(at(`${program}.log`), 'utf8')).slice(-4000)}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  const socket = `unix://${at('docker.sock')}`
  await start(
    'containerd',
    [
      `--root=${at('containerd')}`,
      `--state=${at('containerd-state')}`,
      `--address=${at('containerd.sock')}`,
      `--config=${at('containerd.toml')}`,
    ],
    () =>
      run('ctr', ['--address', at('containerd.sock'), 'version']).then(
        () => true,
        () => false,
      ),
  )
  await start(
    'dockerd',
    [
      `--data-root=${at('data')}`,
      `--exec-root=${at('exec')}`,
      `--pidfile=${at('docker.pid')}`,
      `--config-file=${at('daemon.json')}`,
      `--containerd=${at('containerd.sock')}`,
      '--bridge=none',
      `--host=${socket}`,
      `--host=tcp://${there}:2376`,
      '--tlsverify',
      `--tlscacert=${at('server/ca.pem')}`,
      `--tlscert=${at('server/cert.pem')}`,
      `--tlskey=${at('server/key.pem')}`,
    ],
    () =>
      run('docker', ['-H', socket, 'version']).then(
        () => true,
        () => false,
      ),
  )
  t.teardown(async () => {
    const { stdout } = await run('docker', ['-H', socket, 'ps', '-aq'])
    const ids = stdout.split('\n').filter((id) => id !== '')
    if (ids.length > 0) await run('docker', ['-H', socket, 'rm', '-f', ...ids])
  })

  return {
    host: `tcp://${there}:2376`,
    tlsDirectory: await authority.clientDirectory(at('client')),
    here,
    there,
    link,
    world,
    async shell(program, ...args) {
      const { stdout } = await run('nsenter', inside(program, ...args), {
        env: { ...process.env, DOCKER_HOST: socket },
        maxBuffer: 2 ** 24,
      })
      return stdout.trim()
    },
    async route(cidr) {
      await ip('route', 'add', cidr, 'via', there, 'dev', near)
    },
  }
}

/** Copies images to the other engine without a registry, with `docker save` and `docker load`. */
export async function copyImages(images: readonly string[], remote: RemoteEngine): Promise<void> {
  const target = [
    '-H',
    remote.host,
    '--tlsverify',
    ...(['ca', 'cert', 'key'] as const).map(
      (file) => `--tls${file === 'ca' ? 'cacert' : file}=${join(remote.tlsDirectory, `${file}.pem`)}`,
    ),
  ]
  const save = spawn('docker', ['-H', engineAddress(), 'save', ...images], { stdio: ['ignore', 'pipe', 'inherit'] })
  const load = spawn('docker', [...target, 'load', '--quiet'], { stdio: [save.stdout, 'ignore', 'inherit'] })
  const [[saved], [loaded]] = (await Promise.all([once(save, 'exit'), once(load, 'exit')])) as [
    [number | null],
    [number | null],
  ]
  if (saved !== 0 || loaded !== 0) throw new Error(`docker save ended with ${saved}, docker load with ${loaded}`)
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const late = setTimeout(() => child.kill('SIGKILL'), stopMilliseconds)
  await ended
  clearTimeout(late)
}

async function mountsBelow(directory: string): Promise<string[]> {
  const points = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').map((line) => line.split(' ')[4] ?? '')
  return points.filter((point) => point.startsWith(`${directory}/`)).reverse()
}
