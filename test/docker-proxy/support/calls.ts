// Calls of our own client, with their containers, networks, volumes and commands, and what the rules return for a call.
import type { ContainerSpec } from '#control-plane/engines/container-host.ts'
import { containerBody } from '#control-plane/engines/docker-container-body.ts'
import type { Claim } from '#docker-proxy/claims.ts'
import { readCall } from '#docker-proxy/calls.ts'
import type { ProxyRules } from '#docker-proxy/proxy-rules.ts'
import { parseRange } from '#control-plane/stacks/subnets.ts'

/** The error that the proxy throws when it rejects a call. */
export const rejected = { name: 'Rejected' }

export const installation = '6c1f0b7e-2f0a-4a53-9b5a-2f6f6f1f8f11'
export const stack = 't_0123456789abcdef0123'
export const region = 'region-local'
export const rules: ProxyRules = {
  installation,
  attachedContainers: ['tenantry-gateway', 'tenantry-control-plane'],
  images: ['tenantry/postgres', 'tenantry/tenant-runtime', 'tenantry/gateway'],
  networkRange: parseRange('10.201.0.0/16'),
  published: ['127.0.0.1:4401'],
  spansHosts: false,
}

export const spec: ContainerSpec = {
  name: `tenantry-${stack}-runtime-0123abcd`,
  labels: { installation, stack, service: 'runtime', spec: '0123abcd' },
  image: `sha256:${'ab'.repeat(32)}`,
  command: ['--flag', 'a=b'],
  environment: { MODE: 'production', EMPTY: '', SUM: 'a=b' },
  user: '10001:10001',
  volumes: [
    { volume: `tenantry-${stack}-files`, path: '/var/lib/tenantry', readOnly: false },
    { volume: `tenantry-${stack}-runtime-0123abcd-secrets`, path: '/run/secrets', readOnly: true },
  ],
  scratch: { '/tmp': 'size=64m,mode=1777', '/run/postgresql': 'size=1m,mode=0700,uid=10002,gid=10002' },
  networks: [{ network: `tenantry-${stack}-net`, aliases: [`${stack}-runtime`] }],
  published: [],
  health: {
    command: ['/usr/local/bin/is-live', '24401'],
    intervalSeconds: 10,
    timeoutSeconds: 5,
    retries: 3,
    startSeconds: 20,
  },
  resources: { memoryBytes: 256 * 2 ** 20, cpuMillis: 1_000, pids: 256 },
  stopSeconds: 15,
}

export const gateway: ContainerSpec = {
  ...spec,
  name: `tenantry-${region}-gateway-0123abcd`,
  labels: { installation, stack: region, service: 'gateway', spec: '0123abcd' },
  volumes: [{ volume: `tenantry-${region}-gateway`, path: '/var/lib/tenantry', readOnly: false }],
  networks: [{ network: `tenantry-${region}-net`, aliases: ['gateway'], address: '10.201.0.11' }],
  published: [{ containerPort: 4401, hostAddress: '127.0.0.1', hostPort: 4401 }],
}

export const helper: ContainerSpec = {
  ...spec,
  name: `tenantry-${stack}-runtime-0123abcd-secrets-files`,
  labels: { installation, stack, service: 'runtime' },
  command: ['never-started'],
  environment: {},
  user: '65534:65534',
  volumes: [{ volume: `tenantry-${stack}-runtime-0123abcd-secrets`, path: '/tenantry/files', readOnly: false }],
  scratch: {},
  networks: [],
  resources: { memoryBytes: 16 * 2 ** 20, cpuMillis: 100, pids: 1 },
}

export type Json = Record<string, unknown>

export function json(value: unknown): Json {
  return JSON.parse(JSON.stringify(value)) as Json
}

/** Returns a copy in which the value at a dotted path is replaced. */
export function changed(body: Json, path: string, value: unknown): Json {
  const copy = structuredClone(body)
  const keys = path.split('.')
  const last = keys.pop() ?? ''
  let at = copy
  for (const key of keys) at = at[key] as Json
  at[last] = value
  return copy
}

export function helperBody(of: ContainerSpec): Json {
  const body = json(containerBody(of))
  const host = body['HostConfig'] as Json
  const mounts = (host['Mounts'] as Json[]).map((mount) => ({ ...mount, VolumeOptions: { NoCopy: true } }))
  return { ...body, HostConfig: { ...host, ReadonlyRootfs: false, Mounts: mounts } }
}

/** Returns what the proxy sends for a call. @throws Error when the proxy rejects the call */
export function passed(
  method: string,
  path: string,
  body?: unknown,
  own: ProxyRules = rules,
): { body: object | undefined; claims: Claim[] } {
  const call = readCall(method, path === '/_ping' || path === '/version' ? path : `/v1.41${path}`, own)
  const subject = call.subject === undefined ? [] : [call.subject]
  if (typeof call.body === 'string') return { body: undefined, claims: subject }
  const checked = call.body.check(body)
  return { body: checked.body, claims: [...subject, ...checked.claims] }
}

export function create(of: { name: string }, body: unknown, own: ProxyRules = rules) {
  return passed('POST', `/containers/create?name=${of.name}`, body, own)
}

export function filters(filter: object): string {
  return `filters=${encodeURIComponent(JSON.stringify(filter))}`
}

export const network = {
  Name: `tenantry-${stack}-net`,
  CheckDuplicate: true,
  Driver: 'bridge',
  Internal: true,
  Attachable: false,
  EnableIPv6: false,
  IPAM: { Driver: 'default', Config: [{ Subnet: '10.201.1.16/28' }] },
  Options: { 'com.docker.network.bridge.inhibit_ipv4': 'true' },
  Labels: { 'tenantry.installation': installation, 'tenantry.stack': stack },
}
export const volume = {
  Name: `tenantry-${stack}-data`,
  Driver: 'local',
  Labels: { 'tenantry.installation': installation, 'tenantry.stack': stack },
}
export const limits = {
  Memory: 2 ** 28,
  MemorySwap: 2 ** 28,
  NanoCpus: 500_000_000,
  PidsLimit: 64,
  RestartPolicy: { Name: 'unless-stopped' },
}
export const command = { AttachStdin: true, AttachStdout: true, AttachStderr: true, Tty: false, Cmd: ['psql', '-X'] }
export const own = { label: [`tenantry.installation=${installation}`] }
