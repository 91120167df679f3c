// Connections to a Docker Engine through OpenSSH: each one is an `ssh … docker system dial-stdio`, as in Docker's own client.
// OpenSSH and the operator's ssh configuration handle keys, agents, jump hosts and known hosts.
import { spawn } from 'node:child_process'
import { Agent } from 'node:http'
import { Duplex } from 'node:stream'

export interface SshOptions {
  /** Private key; undefined for those that OpenSSH finds itself. */
  identityFile?: string
  /** Keys of trusted hosts; undefined for OpenSSH's own file. Any other host is rejected. */
  knownHostsFile?: string
}

/** Creates an agent that reuses its connections: a handshake of ssh takes longer than most calls. */
export function sshAgent(url: URL, options: SshOptions): Agent {
  const argv = sshArguments(url, options)
  const agent = new Agent({ keepAlive: true })
  agent.createConnection = () => dial(argv)
  return agent
}

/**
 * Returns ssh's arguments. @throws RangeError for an address with a password or a path, or with an invalid host or user
 */
export function sshArguments(url: URL, { identityFile, knownHostsFile }: SshOptions): string[] {
  const [user, host] = [decodeURIComponent(url.username), url.hostname.replace(/^\[(.*)\]$/, '$1')]
  if (!/^[\w.:%][\w.:%-]*$/.test(host)) throw new RangeError('An address at ssh:// needs a valid host.')
  if (!/^([\w.][\w.-]*)?$/.test(user)) throw new RangeError('The user of an address at ssh:// is not valid.')
  if (url.password !== '') throw new RangeError('An address at ssh:// cannot have a password. Use a key.')
  if (url.pathname !== '' && url.pathname !== '/') throw new RangeError('An address at ssh:// cannot have a path.')
  const settings = [
    'BatchMode=yes',
    'StrictHostKeyChecking=yes',
    'ConnectTimeout=10',
    'ServerAliveInterval=15',
    'ServerAliveCountMax=3',
    'ForwardAgent=no',
    'ForwardX11=no',
    'ClearAllForwardings=yes',
    'PermitLocalCommand=no',
    'RequestTTY=no',
    ...(identityFile === undefined ? [] : [`IdentityFile=${quoted(identityFile)}`, 'IdentitiesOnly=yes']),
    ...(knownHostsFile === undefined
      ? []
      : [`UserKnownHostsFile=${quoted(knownHostsFile)}`, 'GlobalKnownHostsFile=/dev/null']),
  ]
  return [
    ...settings.flatMap((setting) => ['-o', setting]),
    ...(url.port === '' ? [] : ['-p', url.port]),
    ...(user === '' ? [] : ['-l', user]),
    '--',
    host,
    'docker',
    'system',
    'dial-stdio',
  ]
}

/** Quotes a path for ssh_config. */
function quoted(path: string): string {
  return `"${path.replaceAll('%', '%%')}"`
}

/** Maximum number of characters of ssh's standard error in an error. */
const maxStderrLength = 2000

function dial(argv: string[]): Duplex {
  const child = spawn('ssh', argv, { stdio: ['pipe', 'pipe', 'pipe'] })
  const { stdin, stdout, stderr } = child
  let stderrTail = ''
  stderr.setEncoding('utf8').on('data', (text: string) => (stderrTail = (stderrTail + text).slice(-maxStderrLength)))
  const duplex = new Duplex({
    read: () => void stdout.resume(),
    write: (chunk: Buffer, _encoding, done) => void stdin.write(chunk, done),
    final: (done) => void stdin.end(done),
    destroy: (error, done) => {
      child.kill()
      done(error)
    },
  })
  stdout.on('data', (chunk: Buffer) => {
    if (!duplex.push(chunk)) stdout.pause()
  })
  stdout.on('end', () => duplex.push(null))
  stdin.on('error', (error) => duplex.destroy(error))
  child.on('error', (error) => duplex.destroy(error))
  child.on('close', (code) => {
    const failure = Object.assign(new Error(`ssh ended with ${code ?? 'a signal'}: ${stderrTail.trim()}`), {
      code: 'ECONNRESET',
    })
    if (code !== 0) duplex.destroy(failure)
    // Data from before the end may still be unread.
    else if (duplex.readableEnded) duplex.destroy()
    else duplex.once('end', () => duplex.destroy())
  })
  return asSocket(duplex)
}

/** Adds the methods that Node's HTTP client calls on a socket. A pipe to a process has none of them. */
function asSocket(duplex: Duplex): Duplex {
  const same = () => duplex
  return Object.assign(duplex, { setTimeout: same, setNoDelay: same, setKeepAlive: same, ref: same, unref: same })
}
