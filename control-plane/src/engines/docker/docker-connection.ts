// From a region's address of a Docker Engine to a client that speaks to it: a local socket, TLS with certificates on both
// sides, or OpenSSH.
import Dockerode from 'dockerode'
import { readFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { sshAgent, type SshOptions } from './ssh-agent.ts'

export interface DockerAddress {
  /** `unix:///path`, `tcp://host:port` or `ssh://user@host:port`. */
  host: string
  /** Holds `ca.pem`, `cert.pem` and `key.pem`; `tcp://` needs it: whoever reaches an Engine is root on its machine. */
  tlsDirectory?: string
  ssh?: SshOptions
}

interface DockerConnection {
  docker: Dockerode
  /** Ends idle connections; those in use end with their calls. */
  close: () => void
}

/** Nothing is sent yet. @throws RangeError for an address that is none; the file system's errors for certificates */
export function connectDocker(address: DockerAddress): DockerConnection {
  const url = parse(address.host)
  switch (url.protocol) {
    case 'unix:':
      if (url.host !== '' || url.pathname.length < 2)
        throw new RangeError('unix:// takes an absolute path, e.g. unix:///var/run/docker.sock')
      return connection(
        { socketPath: decodeURIComponent(url.pathname), protocol: 'http' },
        new Agent({ keepAlive: true }),
      )
    case 'tcp:':
      if (address.tlsDirectory === undefined)
        throw new RangeError('a Docker Engine at tcp:// is spoken to by TLS only: name a directory of certificates')
      return connection(
        {
          host: bareHost(url),
          port: Number(url.port || 2376),
          protocol: 'https',
          ...readCertificates(address.tlsDirectory),
        },
        new TlsAgent({ keepAlive: true, minVersion: 'TLSv1.2' }),
      )
    case 'ssh:':
      // The host's name goes to the Engine as a header only; where the bytes go is the agent's matter.
      return connection({ host: 'docker', port: 80, protocol: 'http' }, sshAgent(url, address.ssh ?? {}))
    default:
      throw new RangeError(`a Docker Engine is at unix://, tcp:// or ssh://, not at ${url.protocol}//`)
  }
}

function parse(host: string): URL {
  const url = URL.parse(host)
  if (url === null) throw new RangeError('the address of a Docker Engine is no URL')
  return url
}

/** Without the brackets of IPv6. */
function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

function readCertificates(directory: string): Dockerode.DockerOptions {
  const read = (name: string) => readFileSync(join(directory, name), 'utf8')
  return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') }
}

function connection(options: Dockerode.DockerOptions, agent: Agent): DockerConnection {
  // dockerode prints its options into a log line that nobody reads, on every call: an agent is all of its sockets.
  Object.assign(agent, { [inspect.custom]: () => 'Agent' })
  // dockerode takes what is not given here from the environment (DOCKER_HOST, DOCKER_CERT_PATH): say all of it.
  const nothing = {
    socketPath: undefined,
    host: undefined,
    port: undefined,
    ca: undefined,
    cert: undefined,
    key: undefined,
    timeout: undefined,
  }
  const all = { ...nothing, ...options, agent }
  return { docker: new Dockerode(all), close: () => agent.destroy() }
}
