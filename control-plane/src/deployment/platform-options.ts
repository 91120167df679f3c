// Reads the options of `deploy/setup --swarm`. Pure.
import { parseArgs } from 'node:util'
import { ConfigurationError } from '@tenantry/contract'
import { overlaps, parseRange } from '../stacks/index.ts'

/** A host of the platform. */
export interface PlatformHost {
  id: string
  /** IPv4 address on the private network of the hosts. */
  address: string
  zone?: string
  /** The Docker Engine's socket, and the ID of the group that may use it. */
  dockerSocket: string
  dockerGroup: string
}

/** An S3 bucket for the files of tenants. Its secret key is in a file. */
interface PlatformStorage {
  endpoint: string
  bucket: string
  region?: string
  prefix?: string
  path_style?: true
  access_key_id: string
}

/** The options of a platform on several hosts. */
export interface PlatformOptions {
  /** Name of the Compose projects, and prefix of all names. */
  name: string
  domain: string
  /** Whether the operator's certificate is used, and not one of an authority of the platform's own. */
  hasCertificate: boolean
  region: string
  /** Range of the tenants' networks. */
  networkRange: string
  /** The /24 of the platform's own networks. */
  platformRange: { first: number; prefix: number }
  hosts: readonly PlatformHost[]
  /** Address of the public ports. */
  publicAddress: string
  /** Address of the control planes' API; undefined for that of each host. */
  controlAddress: string | undefined
  ports: Record<'http' | 'https' | 'postgres' | 'gateway' | 'control', number>
  storage: PlatformStorage | undefined
  /** Whether the control database is a cluster on these hosts. */
  hasControlDatabase: boolean
  /** Whether Docker encrypts the region's networks, as the option states it; undefined without the option. */
  encryptedNetworks: boolean | undefined
  /** Whether the kernel of the host on which the program runs can encrypt them. */
  kernelEncrypts: boolean
  /** Subnets of the networks that exist, by name. */
  existingNetworks: ReadonlyMap<string, string>
}

const text = { type: 'string' } as const
const options = {
  name: { ...text, default: 'tenantry' },
  domain: text,
  tls: { ...text, default: 'internal' },
  region: { ...text, default: 'local' },
  'network-range': { ...text, default: '10.201.0.0/16' },
  'platform-range': { ...text, default: '10.200.0.0/24' },
  host: { ...text, multiple: true },
  address: { ...text, default: '0.0.0.0' },
  'control-address': { ...text, default: '127.0.0.1' },
  'http-port': { ...text, default: '80' },
  'https-port': { ...text, default: '443' },
  'postgres-port': { ...text, default: '5432' },
  'gateway-port': { ...text, default: '8080' },
  'control-port': { ...text, default: '4400' },
  'docker-socket': { ...text, default: '/var/run/docker.sock' },
  'docker-group': text,
  's3-endpoint': text,
  's3-bucket': text,
  's3-region': text,
  's3-prefix': text,
  's3-path-style': { ...text, default: 'false' },
  's3-access-key-id': text,
  'control-database': { ...text, default: 'cluster' },
  'encrypted-networks': text,
  'kernel-encrypts': { ...text, default: 'false' },
  'existing-network': { ...text, multiple: true },
} as const

const [minHosts, maxHosts] = [3, 16]
const platformPrefix = 24
const id = /^[a-z][a-z0-9-]{0,31}$/
const address = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$/

/** Reads the options. @throws ConfigurationError that names the option and what is allowed */
export function readPlatformOptions(args: readonly string[]): PlatformOptions {
  const given = parse(args)
  const group = given['docker-group'] ?? ''
  const hosts = (given.host ?? []).map((host) => readHost(host, given['docker-socket'], group))
  if (hosts.length < minHosts || hosts.length > maxHosts)
    throw invalid('host', `${hosts.length} of them`, `${minHosts} to ${maxHosts} hosts, each with an option of its own`)
  for (const field of ['id', 'address'] as const)
    if (new Set(hosts.map((host) => host[field])).size !== hosts.length)
      throw new ConfigurationError(`Two hosts have the same ${field}.`)
  check('name', given.name, /^[a-z][a-z0-9-]{0,31}$/, 'lower-case letters, digits and hyphens')
  const domain = check('domain', given.domain ?? '', /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/, 'a host name in lower case')
  return {
    name: given.name,
    domain,
    hasCertificate: check('tls', given.tls, /^(?:internal|files)$/, 'internal, files') === 'files',
    region: check('region', given.region, id, 'lower-case letters, digits and hyphens'),
    ...readRanges(given['network-range'], given['platform-range']),
    hosts,
    publicAddress: check('address', given.address, address, 'an IPv4 address'),
    controlAddress:
      given['control-address'] === 'host'
        ? undefined
        : check(
            'control-address',
            given['control-address'],
            address,
            'an IPv4 address, or "host" for that of each host',
          ),
    ports: {
      http: readPort('http-port', given['http-port']),
      https: readPort('https-port', given['https-port']),
      postgres: readPort('postgres-port', given['postgres-port']),
      gateway: readPort('gateway-port', given['gateway-port']),
      control: readPort('control-port', given['control-port']),
    },
    storage: readStorage(given),
    hasControlDatabase:
      check('control-database', given['control-database'], /^(?:cluster|external)$/, 'cluster, external') === 'cluster',
    encryptedNetworks:
      given['encrypted-networks'] === undefined
        ? undefined
        : readFlag('encrypted-networks', given['encrypted-networks']),
    kernelEncrypts: readFlag('kernel-encrypts', given['kernel-encrypts']),
    existingNetworks: new Map((given['existing-network'] ?? []).map(readNetwork)),
  }
}

type Given = ReturnType<typeof parse>

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values
  } catch (cause) {
    throw new ConfigurationError(cause instanceof Error ? cause.message : 'The options are not valid.', { cause })
  }
}

function invalid(option: string, value: string, allowed: string): ConfigurationError {
  return new ConfigurationError(`Invalid value of --${option}: ${value.slice(0, 100)}. Allowed: ${allowed}.`)
}

function check(option: string, value: string, pattern: RegExp, allowed: string): string {
  if (!pattern.test(value)) throw invalid(option, value, allowed)
  return value
}

function readFlag(option: string, value: string): boolean {
  return check(option, value, /^(?:true|false)$/, 'true, false') === 'true'
}

function readPort(option: string, value: string): number {
  const port = Number(check(option, value, /^\d{1,5}$/, 'a port'))
  if (port < 1 || port > 65_535) throw invalid(option, value, '1 to 65535')
  return port
}

function readHost(value: string, dockerSocket: string, dockerGroup: string): PlatformHost {
  const [head = '', ...more] = value.split(',')
  const [, hostId = '', hostAddress = ''] = /^([^=]*)=(.*)$/.exec(head) ?? []
  const allowed = 'ID=ADDRESS, then optionally ,zone=… ,docker-socket=… ,docker-group=…'
  const fields = more.map((field) => /^(zone|docker-socket|docker-group)=(.+)$/.exec(field))
  if (!id.test(hostId) || !address.test(hostAddress) || fields.includes(null)) throw invalid('host', value, allowed)
  const found = Object.fromEntries(fields.map((field) => [field?.[1] ?? '', field?.[2] ?? '']))
  const { zone } = found
  return {
    id: hostId,
    address: hostAddress,
    ...(zone === undefined ? {} : { zone }),
    dockerSocket: check('docker-socket', found['docker-socket'] ?? dockerSocket, /^\/\S+$/, 'an absolute path'),
    dockerGroup: check('docker-group', found['docker-group'] ?? dockerGroup, /^\d{1,9}$/, 'the number of a group'),
  }
}

function readNetwork(value: string): [name: string, subnet: string] {
  const [name = '', subnet = ''] = value.split('=')
  return [name, subnet]
}

function readRanges(networkRange: string, range: string): Pick<PlatformOptions, 'networkRange' | 'platformRange'> {
  const tenants = rangeOf('network-range', networkRange)
  const [, start = '', prefix = ''] = /^(.*)\/(\d+)$/.exec(range) ?? []
  check('platform-range', start, address, `an IPv4 address ADDRESS/${platformPrefix}`)
  const first = start.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0)
  const platformRange = { first, prefix: Number(prefix) }
  if (platformRange.prefix !== platformPrefix || first % 256 !== 0)
    throw invalid('platform-range', range, `a /${platformPrefix} that begins at a multiple of its size`)
  if (overlaps(tenants, platformRange))
    throw invalid('platform-range', range, 'a range that has no address in common with --network-range')
  return { networkRange, platformRange }
}

function rangeOf(option: string, range: string): ReturnType<typeof parseRange> {
  try {
    return parseRange(range, true)
  } catch (cause) {
    throw new ConfigurationError(`Invalid value of --${option}: ${cause instanceof Error ? cause.message : range}`, {
      cause,
    })
  }
}

function readStorage(given: Given): PlatformStorage | undefined {
  const { 's3-endpoint': endpoint, 's3-bucket': bucket, 's3-access-key-id': keyId } = given
  const { 's3-region': region, 's3-prefix': prefix } = given
  if (endpoint === undefined && bucket === undefined && keyId === undefined) return undefined
  if (endpoint === undefined || bucket === undefined || keyId === undefined)
    throw new ConfigurationError('The options --s3-endpoint, --s3-bucket and --s3-access-key-id belong together.')
  const isPathStyle = readFlag('s3-path-style', given['s3-path-style'])
  return {
    endpoint,
    bucket,
    access_key_id: keyId,
    ...(region === undefined ? {} : { region }),
    ...(prefix === undefined ? {} : { prefix }),
    ...(isPathStyle ? { path_style: true } : {}),
  }
}
