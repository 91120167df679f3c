// All files of the hosts of a platform: a Compose file for each, and the files of its containers. Pure, except for what it stores.
import { createHash, randomUUID } from 'node:crypto'
import { ConfigurationError } from '@tenantry/contract'
import { proxiedGateway, ports } from '../stacks/index.ts'
import {
  caddyService,
  controlPlaneService,
  databaseComposeService,
  dockerProxyService,
  hardened,
  watchdogService,
  type ComposeService,
} from './compose-services.ts'
import { controlDatabase } from './control-database.ts'
import { checkFixedOptions } from './fixed-options.ts'
import { platformNetworks, type PlatformNetwork } from './platform-networks.ts'
import type { PlatformHost, PlatformOptions } from './platform-options.ts'
import { platformSecrets, type StoredFiles } from './platform-secrets.ts'
import { controlPlanes, regionsFile } from './regions-file.ts'
import { toYaml, type Yaml } from './to-yaml.ts'

export type { StoredFiles } from './platform-secrets.ts'

/** A file of a host. */
export interface PlatformFile {
  /** Path below the directory of all hosts' files. */
  path: string
  text: string
  /** User and group that own it, and are the only ones that can read it. */
  user: number
}

/** Everything that `deploy/setup --swarm` writes and creates. */
interface Platform {
  files: PlatformFile[]
  missingNetworks: PlatformNetwork[]
}

/**
 * Returns the files, and stores the secrets that do not exist yet.
 * @throws ConfigurationError for files of the operator that are missing or do not fit the options
 */
export function platformFiles(options: PlatformOptions, stored: StoredFiles, now: Date): Platform {
  checkFixedOptions(options, stored)
  const networks = platformNetworks(options)
  for (const { name, subnet } of networks) {
    const found = options.existingNetworks.get(name) ?? subnet
    if (found !== subnet)
      throw new ConfigurationError(
        `The network ${name} has the subnet ${found}, but --platform-range requires ${subnet}. Change the option, or remove the network.`,
      )
  }
  const installation = stored.keep('installation', () => `${randomUUID()}\n`).trim()
  const secrets = platformSecrets(options, stored, now)
  const settings = stored.keep(
    'control-plane.env',
    () => '# Settings of the control planes, NAME=value in each line.\n',
  )
  const regions = regionsFile(options, stored)
  const database = secrets.database === undefined ? [] : controlDatabase(options, secrets.database)
  const tls = (of: { certificate: string; privateKey: string }) => ({
    'ca.pem': secrets.proxyAuthority,
    'cert.pem': of.certificate,
    'key.pem': of.privateKey,
  })
  const proxyTls = Object.entries(tls(secrets.controlPlane)).map(([file, text]) => [`docker-proxy/${file}`, text])
  const controlFiles = {
    secrets: {
      'master-key': secrets.masterKey,
      'internal-token': secrets.internalToken,
      'control-database-url': required(stored, 'secrets/control-database-url', 'See --control-database-url-file.'),
      'regions.json': regions,
      ...s3Secret(stored, regions),
      ...(Object.fromEntries(proxyTls) as Record<string, string>),
    },
    settings,
    prices: directory(stored, 'prices'),
    targets: directory(stored, 'targets'),
  }
  const certificates = certificatesOf(stored, secrets.server)
  const caddyfile = caddyfileFor(required(stored, 'Caddyfile', 'deploy/setup copies it.'))
  const files = options.hosts.flatMap((host, number) => {
    const proxy = secrets.proxies.get(host.id)
    if (proxy === undefined) return []
    const services = [
      watchdogService(options, host),
      dockerProxyService(options, host, installation, tls(proxy)),
      ...database.filter((service) => service.host === host.id).map(databaseComposeService),
      ...(number < controlPlanes ? [controlPlaneService(options, host, installation, controlFiles)] : []),
      caddyService(options, caddyfile, certificates),
    ]
    return hostFiles(options, host, services.map(withoutEmptyDirectories), networks)
  })
  return { files, missingNetworks: networks.filter(({ name }) => !options.existingNetworks.has(name)) }
}

function required(stored: StoredFiles, path: string, hint: string): string {
  const text = stored.read(path)
  if (text === undefined) throw new ConfigurationError(`The file ${path} does not exist. ${hint}`)
  return text
}

function s3Secret(stored: StoredFiles, regions: string): Record<string, string> {
  if (!regions.includes('/run/secrets/s3-secret-key')) return {}
  return { 's3-secret-key': required(stored, 'secrets/s3-secret-key', 'See --s3-secret-key-file.') }
}

function directory(stored: StoredFiles, path: string): Record<string, string> {
  return Object.fromEntries(stored.names(path).map((name) => [name, required(stored, `${path}/${name}`, '')]))
}

function certificatesOf(
  stored: StoredFiles,
  own: { certificate: string; privateKey: string } | undefined,
): Record<string, string> {
  const hint = 'Option --tls files needs it.'
  return {
    'certificate.pem': own?.certificate ?? required(stored, 'certificates/certificate.pem', hint),
    'key.pem': own?.privateKey ?? required(stored, 'certificates/key.pem', hint),
  }
}

/**
 * Returns Caddy's configuration for several hosts: it finds the gateways of all hosts by a name, and tries another one if one does not
 * respond.
 */
function caddyfileFor(text: string): string {
  const upstream = `reverse_proxy ${proxiedGateway}:${ports.gateway} {`
  const certificates = '/etc/caddy/certificates/'
  if (!text.includes(upstream) || !text.includes(certificates))
    throw new ConfigurationError('The Caddyfile is not that of this version.')
  return text
    .replaceAll(certificates, '/run/secrets/')
    .replace(
      upstream,
      [
        'reverse_proxy {',
        `\t\tdynamic a ${proxiedGateway} ${ports.gateway} {`,
        '\t\t\trefresh 2s',
        '\t\t}',
        '\t\tlb_policy round_robin',
        '\t\tlb_try_duration 4s',
        '\t\tfail_duration 5s',
      ].join('\n'),
    )
}

function withoutEmptyDirectories(service: ComposeService): ComposeService {
  return { ...service, directories: service.directories.filter(({ files }) => Object.keys(files).length > 0) }
}

function hostFiles(
  { name }: PlatformOptions,
  { id }: PlatformHost,
  services: readonly ComposeService[],
  networks: readonly PlatformNetwork[],
): PlatformFile[] {
  const base = `hosts/${id}`
  const volumes = services.flatMap(({ definition }) =>
    Array.isArray(definition['volumes'])
      ? definition['volumes'].flatMap((volume: Yaml) =>
          typeof volume === 'string' ? [volume.split(':')[0] ?? ''] : [],
        )
      : [],
  )
  const compose: Yaml = {
    services: Object.fromEntries(services.map((service) => [service.name, definitionOf(name, service)])),
    networks: {
      ...Object.fromEntries(networks.map((network) => [network.key, { name: network.name, external: true }])),
      operators: {},
      edge: {},
    },
    volumes: Object.fromEntries(volumes.map((volume) => [volume, {}])),
  }
  const head = '# Written by deploy/setup --swarm. Do not change it here: the next run writes it again.\n'
  return [
    { path: `${base}/docker-compose.yml`, text: `${head}${toYaml(compose)}`, user: 0 },
    { path: `${base}/.env`, text: `COMPOSE_PROJECT_NAME=${name}\n`, user: 0 },
    ...services.flatMap((service) =>
      service.directories.flatMap((one) =>
        Object.entries(one.files).map(([file, text]) => ({
          path: `${base}/${directoryOf(service, one.target)}/${file}`,
          text,
          user: service.user,
        })),
      ),
    ),
  ]
}

/** Returns a service of the Compose file. The label changes with its files, so that Compose then replaces the container. */
function definitionOf(name: string, service: ComposeService): Yaml {
  const { definition, directories } = service
  const mounts = directories.map(({ target }) => ({
    type: 'bind',
    source: `./${directoryOf(service, target)}`,
    target,
    read_only: true,
  }))
  const own = Array.isArray(definition['volumes']) ? (definition['volumes'] as readonly Yaml[]) : []
  return {
    container_name: `${name}-${service.name}`,
    ...definition,
    ...hardened,
    volumes: [...own, ...mounts],
    labels: { 'org.tenantry.files': hashOf(directories) },
  }
}

function directoryOf(service: ComposeService, target: string): string {
  return `${service.name}/${target.split('/').at(-1) ?? ''}`
}

/** Returns a hash of the files, without those that are replaced while the container runs. */
function hashOf(directories: ComposeService['directories']): string {
  const fixed = directories.flatMap(({ target, files }) =>
    Object.entries(files)
      .filter(([name]) => name !== 'internal-token')
      .map(([name, text]) => [target, name, text]),
  )
  return createHash('sha256').update(JSON.stringify(fixed)).digest('hex')
}
