// Reads the proxy's environment into one frozen value.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigurationError, Environment, dockerProxySettings } from '@tenantry/contract'
import { parseRange } from '../../control-plane/src/stacks/index.ts'
import type { ProxyCertificates } from './proxy.ts'
import type { ProxyRules } from './proxy-rules.ts'

interface ProxyConfig {
  /** Paths of the proxy's socket and of the Engine's. */
  socket: string
  engineSocket: string
  /** The port for clients on other hosts; undefined if all clients use the socket. */
  remote: RemoteClients | undefined
  /** Name of the proxy's Compose project. */
  composeProject: string
  rules: ProxyRules
  logLevel: string
}

/** The port for clients on other hosts. */
interface RemoteClients {
  port: number
  tls: ProxyCertificates
}

/** Reads the configuration. @throws Error that names the variable and the violation */
export function readProxyConfig(variables: NodeJS.ProcessEnv): ProxyConfig {
  const environment = new Environment(dockerProxySettings, variables)
  const list = (name: keyof typeof dockerProxySettings) =>
    (environment.optional(name) ?? '')
      .split(',')
      .map((one) => one.trim())
      .filter((one) => one !== '')
  const installation = environment.required('TENANTRY_INSTALLATION')
  if (!/^[A-Za-z0-9_-]{8,64}$/.test(installation))
    throw new ConfigurationError('TENANTRY_INSTALLATION must be 8 to 64 letters, digits, underscores and dashes.')
  const images = list('TENANTRY_DOCKER_PROXY_IMAGES')
  if (images.length === 0) throw new ConfigurationError('TENANTRY_DOCKER_PROXY_IMAGES must name at least one image.')
  const remote = readRemote(environment)
  return Object.freeze({
    remote,
    socket: environment.required('TENANTRY_DOCKER_PROXY_SOCKET'),
    engineSocket: environment.optional('TENANTRY_DOCKER_SOCKET') ?? '/var/run/docker.sock',
    composeProject: environment.required('TENANTRY_COMPOSE_PROJECT'),
    rules: {
      installation,
      attachedContainers: list('TENANTRY_DOCKER_PROXY_ATTACHED'),
      images,
      networkRange: parseRange(environment.required('TENANTRY_NETWORK_RANGE')),
      published: list('TENANTRY_DOCKER_PROXY_PUBLISHED'),
      spansHosts: remote !== undefined,
    },
    logLevel: environment.logLevel(),
  })
}

function readRemote(environment: Environment<keyof typeof dockerProxySettings>): RemoteClients | undefined {
  const port = environment.integer('TENANTRY_DOCKER_PROXY_PORT', 0, 0, 65_535)
  if (port === 0) return undefined
  const directory = environment.required('TENANTRY_DOCKER_PROXY_TLS')
  const read = (name: string): string => {
    try {
      return readFileSync(join(directory, name), 'utf8')
    } catch (cause) {
      throw new ConfigurationError(`The file ${name} in TENANTRY_DOCKER_PROXY_TLS cannot be read.`, { cause })
    }
  }
  return { port, tls: { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') } }
}
