// Reads the proxy's environment into one frozen value.
import { ConfigurationError, Environment, dockerProxySettings } from '@tenantry/contract'
import { parseRange } from '../../control-plane/src/stacks/index.ts'
import type { ProxyRules } from './proxy-rules.ts'

interface ProxyConfig {
  /** Paths of the proxy's socket and of the Engine's. */
  socket: string
  engineSocket: string
  /** Name of the proxy's Compose project. */
  composeProject: string
  rules: ProxyRules
  logLevel: string
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
  return Object.freeze({
    socket: environment.required('TENANTRY_DOCKER_PROXY_SOCKET'),
    engineSocket: environment.optional('TENANTRY_DOCKER_SOCKET') ?? '/var/run/docker.sock',
    composeProject: environment.required('TENANTRY_COMPOSE_PROJECT'),
    rules: {
      installation,
      attachedContainers: list('TENANTRY_DOCKER_PROXY_ATTACHED'),
      images,
      networkRange: parseRange(environment.required('TENANTRY_NETWORK_RANGE')),
      published: list('TENANTRY_DOCKER_PROXY_PUBLISHED'),
    },
    logLevel: environment.logLevel(),
  })
}
