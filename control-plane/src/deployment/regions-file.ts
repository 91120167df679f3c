// The file of regions: what the first run writes, and whether the options of a later one fit it. Pure, except for what it stores.
import { ConfigurationError } from '@tenantry/contract'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { controlContainer, engineAddress, proxyContainer } from './compose-services.ts'
import type { PlatformOptions } from './platform-options.ts'
import type { StoredFiles } from './platform-secrets.ts'

/** Number of hosts with a control plane: one leads, and the other one leads after its end. */
export const controlPlanes = 2

/** The fields of a region that follow from options. */
const Region = Type.Object({
  id: Type.String(),
  domain: Type.String(),
  swarm: Type.Object({
    hosts: Type.Array(Type.Object({ id: Type.String(), address: Type.String(), zone: Type.Optional(Type.String()) })),
    network_range: Type.String(),
    gateway: Type.Object({ port: Type.Integer(), postgres_port: Type.Integer() }),
    encrypted_networks: Type.Optional(Type.Boolean()),
    storage: Type.Optional(Type.Object({ s3: Type.Optional(Type.Record(Type.String(), Type.Unknown())) })),
  }),
})

/**
 * Returns the file of regions, and writes it if it does not exist.
 * @throws ConfigurationError if it exists and does not fit the options
 */
export function regionsFile(options: PlatformOptions, stored: StoredFiles): string {
  const text = stored.keep('regions.json', () => `${JSON.stringify([regionOf(options)], null, 2)}\n`)
  const found = regionIn(text, options.region)
  checkHosts(found, options)
  for (const [option, wanted, stated] of comparisons(found, options))
    if (String(wanted) !== String(stated))
      throw new ConfigurationError(
        `Option --${option} states ${String(wanted)}, but regions.json has ${String(stated)}. Correct the option, or edit regions.json.`,
      )
  return text
}

/** Returns the region of the platform, which the operator may change later. */
function regionOf(options: PlatformOptions): object {
  const { domain, hosts, ports: publicPorts, storage } = options
  const suffix = publicPorts.https === 443 ? '' : `:${publicPorts.https}`
  return {
    id: options.region,
    engine: 'swarm',
    domain,
    gateway_url: `https://${domain}${suffix}`,
    database_host: `${domain}:${publicPorts.postgres}`,
    swarm: {
      hosts: hosts.map((host) => ({
        id: host.id,
        ...engineAddress(options, host),
        address: host.address,
        ...(host.zone === undefined ? {} : { zone: host.zone }),
      })),
      network_range: options.networkRange,
      images: {
        postgres: 'tenantry/postgres:latest',
        runtime: 'tenantry/tenant-runtime:latest',
        gateway: 'tenantry/gateway:latest',
      },
      clusters: { member_image: 'tenantry/cluster-member:latest', etcd_image: 'tenantry/etcd:latest' },
      control_url: 'http://control-plane:4400',
      control_containers: hosts
        .slice(0, controlPlanes)
        .map(({ id }) => ({ host: id, container: controlContainer(options) })),
      proxy_containers: hosts.map(({ id }) => ({ host: id, container: proxyContainer(options) })),
      gateway: { port: publicPorts.gateway, postgres_port: publicPorts.postgres },
      encrypted_networks: options.encryptedNetworks ?? options.kernelEncrypts,
      egress: {},
      ...(storage === undefined
        ? {}
        : { storage: { backend: 's3', s3: { ...storage, secret_access_key_file: '/run/secrets/s3-secret-key' } } }),
    },
  }
}

function regionIn(text: string, id: string): Static<typeof Region> {
  const region = regionsIn(text).find((one) => Value.Check(Type.Object({ id: Type.Literal(id) }), one))
  if (region === undefined)
    throw new ConfigurationError(`regions.json has no region "${id}". Correct --region, or edit regions.json.`)
  if (Value.Check(Region, region)) return region
  const [first] = Value.Errors(Region, region)
  throw new ConfigurationError(
    `regions.json has an invalid region "${id}": ${first?.instancePath ?? ''} ${first?.message ?? ''}.`,
  )
}

function regionsIn(text: string): readonly unknown[] {
  try {
    const regions = JSON.parse(text) as unknown
    return Array.isArray(regions) ? regions : []
  } catch (cause) {
    throw new ConfigurationError('regions.json is not valid JSON.', { cause })
  }
}

function checkHosts({ swarm }: Static<typeof Region>, { region, hosts }: PlatformOptions): void {
  const [found, wanted] = [swarm.hosts, hosts].map((all) => all.map(({ id }) => id).join(', '))
  if (found !== wanted)
    throw new ConfigurationError(
      `regions.json has the hosts ${found} in the region "${region}", but the options name ${wanted}.`,
    )
}

/** Returns options with their values, and those of the file. */
function comparisons(
  { domain, swarm }: Static<typeof Region>,
  options: PlatformOptions,
): (readonly [option: string, wanted: unknown, stated: unknown])[] {
  const s3 = swarm.storage?.s3 ?? {}
  return [
    ['domain', options.domain, domain],
    ['network-range', options.networkRange, swarm.network_range],
    ['gateway-port', options.ports.gateway, swarm.gateway.port],
    ['postgres-port', options.ports.postgres, swarm.gateway.postgres_port],
    // Without the option, the file decides.
    ...(options.encryptedNetworks === undefined
      ? []
      : [['encrypted-networks', options.encryptedNetworks, swarm.encrypted_networks ?? false] as const]),
    ...options.hosts.map((host, at) => ['host', described(host), described(swarm.hosts[at] ?? host)] as const),
    ...Object.entries(options.storage ?? {}).map(
      ([field, value]) => [`s3-${field.replaceAll('_', '-')}`, value, s3[field] ?? 'none'] as const,
    ),
  ]
}

function described({ id, address, zone }: { id: string; address: string; zone?: string }): string {
  return `${id}=${address}${zone === undefined ? '' : `,zone=${zone}`}`
}
