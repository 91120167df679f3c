// Starts an OpenSSH server for one test, with its own keys and a free port. It gives access to a Docker Engine's socket only.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { until } from './docker.ts'
import { freePort } from './postgres.ts'

const run = promisify(execFile)

export interface Sshd {
  port: number
  /** Private key that the server accepts. */
  identityFile: string
  /** Private key that the server does not know. */
  foreignFile: string
  /** Known-hosts file with the server's key. `wrongKnownHostsFile` has another key. */
  knownHostsFile: string
  wrongKnownHostsFile: string
  /** Returns the number of logins so far. */
  logins(): Promise<number>
}

/** Starts the server. @param directory an empty directory that only this test uses */
export async function startSshd(t: Test, directory: string, engineSocket: string): Promise<Sshd> {
  const at = (file: string) => join(directory, file)
  const { sshd, libraries } = await findSshd()
  const keys = ['host', 'other', 'client', 'foreign']
  await Promise.all(keys.map((key) => run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', at(key)])))
  const port = await freePort()
  const publicKey = async (key: string) => (await readFile(at(`${key}.pub`), 'utf8')).trim()
  await writeFile(at('authorized'), await publicKey('client'))
  await writeFile(at('known'), `[127.0.0.1]:${port} ${await publicKey('host')}\n`)
  await writeFile(at('known-wrong'), `[127.0.0.1]:${port} ${await publicKey('other')}\n`)
  // The script does what `docker system dial-stdio` does, and rejects any other command.
  await writeFile(at('dial.mjs'), dialScript(engineSocket, at('logins')))
  await writeFile(at('logins'), '')
  await writeFile(
    at('sshd_config'),
    [
      'ListenAddress 127.0.0.1',
      `Port ${port}`,
      `HostKey ${at('host')}`,
      `PidFile ${at('pid')}`,
      `AuthorizedKeysFile ${at('authorized')}`,
      'UsePAM no',
      'StrictModes no',
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      'PermitRootLogin prohibit-password',
      'MaxStartups 100',
      `ForceCommand ${process.execPath} ${at('dial.mjs')}`,
      '',
    ].join('\n'),
  )
  await writeFile(at('passwd'), 'root::0:0:root:/root:/bin/sh\nsshd:*:100:65534::/run/sshd:/usr/sbin/nologin\n')
  // sshd requires its own user and directory. A mount namespace provides both to sshd alone.
  const script = 'set -e; mount --bind "$1" /etc/passwd; mkdir -p /run/sshd; exec "$2" -D -e -f "$3"'
  const log: string[] = []
  const server = spawn(
    'unshare',
    ['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', at('passwd'), sshd, at('sshd_config')],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: process.env['PATH'] ?? '', ...(libraries === undefined ? {} : { LD_LIBRARY_PATH: libraries }) },
    },
  )
  server.stderr.setEncoding('utf8').on('data', (text: string) => log.push(text))
  t.teardown(async () => {
    if (server.exitCode !== null || server.signalCode !== null) return
    const gone = once(server, 'exit')
    server.kill('SIGTERM')
    await gone
  })
  await until(async () => {
    if (server.exitCode !== null) throw new Error(`sshd ended: ${log.join('')}`)
    const socket = connect(port, '127.0.0.1')
    const hasResponded = await once(socket, 'data').then(
      () => true,
      () => undefined,
    )
    socket.destroy()
    return hasResponded
  })
  const logins = async () => (await readFile(at('logins'), 'utf8')).length
  return {
    port,
    identityFile: at('client'),
    foreignFile: at('foreign'),
    knownHostsFile: at('known'),
    wrongKnownHostsFile: at('known-wrong'),
    logins,
  }
}

function dialScript(engineSocket: string, logins: string): string {
  return `import { appendFileSync } from 'node:fs'
import { connect } from 'node:net'
if (process.env.SSH_ORIGINAL_COMMAND !== 'docker system dial-stdio') process.exit(77)
appendFileSync(${JSON.stringify(logins)}, '.')
const engine = connect({ path: ${JSON.stringify(engineSocket)}, allowHalfOpen: true })
process.stdin.pipe(engine)
engine.pipe(process.stdout)
engine.on('error', () => process.exit(1)).on('end', () => process.stdout.write('', () => process.exit(0)))
`
}

interface Found {
  sshd: string
  /** Directory of its shared libraries; undefined for the system's. */
  libraries: string | undefined
}

/** Returns the machine's sshd, or that of Debian's package, unpacked but not installed. @throws Error when neither exists */
async function findSshd(): Promise<Found> {
  const own = '/usr/sbin/sshd'
  if (
    await access(own).then(
      () => true,
      () => false,
    )
  )
    return { sshd: own, libraries: undefined }
  const cache = join(tmpdir(), `tenantry-sshd-${process.getuid?.() ?? 0}`)
  const sshd = join(cache, 'usr/sbin/sshd')
  if (
    !(await access(sshd).then(
      () => true,
      () => false,
    ))
  ) {
    await mkdir(cache, { recursive: true })
    await chmod(cache, 0o755)
    await run('apt-get', ['download', '-qq', 'openssh-server', 'libwrap0'], { cwd: cache, timeout: 120_000 })
    for (const file of await readdir(cache))
      if (file.endsWith('.deb')) await run('dpkg', ['-x', file, '.'], { cwd: cache })
  }
  const triplet = (await readdir(join(cache, 'usr/lib'))).find((name) => name.endsWith('-linux-gnu'))
  return { sshd, libraries: triplet === undefined ? undefined : join(cache, 'usr/lib', triplet) }
}
