// Connections to a Docker Engine through OpenSSH: each is one `ssh … docker system dial-stdio`, as Docker's own client does
// it. Keys, agents, jump hosts and known hosts are OpenSSH's matter and that of the operator's ssh configuration.
import { spawn } from 'node:child_process'
import { Agent } from 'node:http'
import { Duplex } from 'node:stream'

export interface SshOptions {
  /** Private key; undefined: what OpenSSH finds by itself. */
  identityFile?: string
  /** Keys of the hosts that are trusted; undefined: OpenSSH's own. A host that is not among them is refused. */
  knownHostsFile?: string
}

/** Kept connections are used again: a handshake of ssh takes longer than most calls. */
export function sshAgent(url: URL, options: SshOptions): Agent {
  const argv = sshArguments(url, options)
  const agent = new Agent({ keepAlive: true })
  agent.createConnection = () => dial(argv)
  return agent
}

/** @throws RangeError for an address with a password or a path, or whose host or user are none */
export function sshArguments(url: URL, { identityFile, knownHostsFile }: SshOptions): string[] {
  const [user, host] = [decodeURIComponent(url.username), url.hostname.replace(/^\[(.*)\]$/, '$1')]
  if (!/^[\w.:%][\w.:%-]*$/.test(host)) throw new RangeError('ssh:// names no host')
  if (!/^([\w.][\w.-]*)?$/.test(user)) throw new RangeError('ssh:// names no user')
  if (url.password !== '') throw new RangeError('ssh:// takes no password: use a key')
  if (url.pathname !== '' && url.pathname !== '/') throw new RangeError('ssh:// takes no path')
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

/** As ssh_config reads a path with spaces. */
function quoted(path: string): string {
  return `"${path.replaceAll('%', '%%')}"`
}

/** Characters of what ssh says of its failures. */
const maxReported = 2000

function dial(argv: string[]): Duplex {
  const child = spawn('ssh', argv, { stdio: ['pipe', 'pipe', 'pipe'] })
  const { stdin, stdout, stderr } = child
  let reported = ''
  stderr.setEncoding('utf8').on('data', (text: string) => (reported = (reported + text).slice(-maxReported)))
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
    const failure = Object.assign(new Error(`ssh ended with ${code ?? 'a signal'}: ${reported.trim()}`), {
      code: 'ECONNRESET',
    })
    if (code !== 0) duplex.destroy(failure)
    // What came before the end is still to be read.
    else if (duplex.readableEnded) duplex.destroy()
    else duplex.once('end', () => duplex.destroy())
  })
  return asSocket(duplex)
}

/** What Node's HTTP client asks of a connection beyond being a stream; a pipe to a process has none of it. */
function asSocket(duplex: Duplex): Duplex {
  const same = () => duplex
  return Object.assign(duplex, { setTimeout: same, setNoDelay: same, setKeepAlive: same, ref: same, unref: same })
}
