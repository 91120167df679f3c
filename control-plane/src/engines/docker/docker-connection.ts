// Creates a client from a region's address of a Docker Engine: a local socket, TLS with certificates on both sides, or
// OpenSSH.
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
  /**
   * Directory with `ca.pem`, `cert.pem` and `key.pem`. `tcp://` requires it: a client of an Engine is root on its
   * machine.
   */
  tlsDirectory?: string | undefined
  ssh?: SshOptions
}

interface DockerConnection {
  docker: Dockerode
  /** Ends idle connections; connections in use end with their calls. */
  close: () => void
}

/**
 * Creates a client and sends nothing yet. @throws RangeError for an invalid address; the file system's errors for
 * certificates
 */
export function connectDocker(address: DockerAddress): DockerConnection {
  const url = parse(address.host)
  switch (url.protocol) {
    case 'unix:':
      if (url.host !== '' || url.pathname.length < 2)
        throw new RangeError('An address at unix:// needs an absolute path, for example unix:///var/run/docker.sock.')
      return connection(
        { socketPath: decodeURIComponent(url.pathname), protocol: 'http' },
        new Agent({ keepAlive: true }),
      )
    case 'tcp:':
      if (address.tlsDirectory === undefined)
        throw new RangeError('A Docker Engine at tcp:// requires TLS. Name a directory of certificates.')
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
      // The Engine receives the host's name as a header only. The agent decides where the bytes go.
      return connection({ host: 'docker', port: 80, protocol: 'http' }, sshAgent(url, address.ssh ?? {}))
    default:
      throw new RangeError(`Invalid protocol "${url.protocol}//" of a Docker Engine. Allowed: unix://, tcp://, ssh://.`)
  }
}

function parse(host: string): URL {
  const url = URL.parse(host)
  if (url === null) throw new RangeError('The address of a Docker Engine is not a valid URL.')
  return url
}

/** Returns the host without the brackets of IPv6. */
function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

function readCertificates(directory: string): Dockerode.DockerOptions {
  const read = (name: string) => readFileSync(join(directory, name), 'utf8')
  return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') }
}

function connection(options: Dockerode.DockerOptions, agent: Agent): DockerConnection {
  // dockerode formats its options for an unused debug log on every call, and an agent prints all of its sockets.
  Object.assign(agent, { [inspect.custom]: () => 'Agent' })
  // dockerode reads options that are absent here from the environment (DOCKER_HOST, DOCKER_CERT_PATH), so all are set.
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
