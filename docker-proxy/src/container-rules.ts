// Validates a container before its creation: converts the request to a specification and creates the body again from
// the hardening template, so that no field passes that the template does not have. Pure.
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import {
  type ContainerSpec,
  type Labels,
  containerBody,
  fromDocker,
  toDocker,
} from '../../control-plane/src/engines/index.ts'
import { ports } from '../../control-plane/src/stacks/index.ts'
import { helperSuffix, type Claim } from './claims.ts'
import { firstDifference } from './difference.ts'
import type { ProxyRules } from './proxy-rules.ts'
import { ownLabels } from './owned-labels.ts'
import { Rejected } from './rejected.ts'

const Texts = Type.Array(Type.String())
const Count = Type.Integer({ minimum: 1 })

/** The parts of the body from which the specification is read. All other fields are compared afterwards. */
const Body = Type.Object({
  Image: Type.String(),
  Cmd: Texts,
  Env: Texts,
  User: Type.String(),
  Labels: Type.Record(Type.String(), Type.String()),
  StopTimeout: Count,
  Healthcheck: Type.Object({
    Test: Texts,
    Interval: Count,
    Timeout: Count,
    Retries: Count,
    StartPeriod: Type.Integer({ minimum: 0 }),
  }),
  HostConfig: Type.Object({
    Memory: Count,
    NanoCpus: Count,
    PidsLimit: Count,
    Tmpfs: Type.Record(Type.String(), Type.String()),
    Mounts: Type.Array(Type.Object({ Source: Type.String(), Target: Type.String(), ReadOnly: Type.Boolean() })),
    PortBindings: Type.Record(
      Type.String(),
      Type.Array(Type.Object({ HostIp: Type.String(), HostPort: Type.String() })),
    ),
  }),
  NetworkingConfig: Type.Optional(
    Type.Object({
      EndpointsConfig: Type.Record(
        Type.String(),
        Type.Object({ Aliases: Texts, IPAMConfig: Type.Optional(Type.Object({ IPv4Address: Type.String() })) }),
      ),
    }),
  ),
})
type Body = Static<typeof Body>

/** A container that may be created, and the requirements of its parts. */
export interface CheckedContainer {
  body: object
  claims: Claim[]
}

/** Validates a container. @throws Rejected */
export function checkedContainer(name: string, given: unknown, rules: ProxyRules): CheckedContainer {
  if (!Value.Check(Body, given)) throw new Rejected("the container does not have the template's form")
  const spec = specOf(name, given)
  const body: unknown = JSON.parse(JSON.stringify(name.endsWith(helperSuffix) ? helperBody(spec) : containerBody(spec)))
  const difference = firstDifference(given, body)
  if (difference !== undefined) throw new Rejected(`the container differs from the template at ${difference}`)
  checkSpec(spec, rules)
  return {
    body: body as object,
    claims: [
      { kind: 'image', name: spec.image },
      ...spec.volumes.map(({ volume }): Claim => ({ kind: 'volume', name: volume })),
      ...spec.networks.map(({ network }): Claim => ({ kind: 'network', name: network })),
    ],
  }
}

/** Returns the argument from which `containerBody` would have made this body. */
function specOf(name: string, body: Body): ContainerSpec {
  const { Healthcheck: health, HostConfig: host } = body
  return {
    name,
    labels: fromDocker(body.Labels) ?? { installation: '', stack: '' },
    image: body.Image,
    command: body.Cmd,
    environment: Object.fromEntries(body.Env.map(parseVariable)),
    user: body.User,
    volumes: host.Mounts.map(({ Source: volume, Target: path, ReadOnly: readOnly }) => ({ volume, path, readOnly })),
    scratch: host.Tmpfs,
    networks: Object.entries(body.NetworkingConfig?.EndpointsConfig ?? {}).map(
      ([network, { Aliases: aliases, IPAMConfig: ipam }]) => ({
        network,
        aliases,
        ...(ipam === undefined ? {} : { address: ipam.IPv4Address }),
      }),
    ),
    published: Object.entries(host.PortBindings).flatMap(([port, bindings]) =>
      bindings.map(({ HostIp: hostAddress, HostPort: hostPort }) => ({
        containerPort: parseInt(port, 10),
        hostAddress,
        hostPort: Number(hostPort),
      })),
    ),
    health: {
      command: health.Test.slice(1),
      intervalSeconds: health.Interval / 1e9,
      timeoutSeconds: health.Timeout / 1e9,
      retries: health.Retries,
      startSeconds: health.StartPeriod / 1e9,
    },
    resources: { memoryBytes: host.Memory, cpuMillis: host.NanoCpus / 1e6, pids: host.PidsLimit },
    stopSeconds: body.StopTimeout,
  }
}

function parseVariable(text: string): [string, string] {
  const at = text.indexOf('=')
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

/**
 * Returns a helper's body as in engines/docker/volume-files.ts. Its root is writable, because the Engine extracts no
 * files into a read-only one.
 */
function helperBody(spec: ContainerSpec): object {
  const { HostConfig: host, ...body } = containerBody(spec)
  const mounts = host?.Mounts?.map((mount) => ({ ...mount, VolumeOptions: { NoCopy: true } }))
  return { ...body, HostConfig: { ...host, ReadonlyRootfs: false, Mounts: mounts } }
}

const user = /^[1-9]\d{0,4}:[1-9]\d{0,4}$/
const imageReference = /^[a-z0-9][a-z0-9._/:@-]{0,254}$/
const ownName = /^tenantry-[A-Za-z0-9_.-]{1,190}$/

/** Checks the values that the template does not fix. */
function checkSpec(spec: ContainerSpec, rules: ProxyRules): void {
  const labels = ownLabels(spec.name, toDocker(spec.labels), rules)
  if (!user.test(spec.user)) throw new Rejected('the user is not a numeric user and group other than root')
  if (!imageReference.test(spec.image)) throw new Rejected('the reference of the image is not valid')
  for (const { volume, path } of spec.volumes) {
    if (!ownName.test(volume)) throw new Rejected(`the volume ${volume} does not have a name of Tenantry`)
    if (!isOwnPath(path)) throw new Rejected(`no volume may be mounted at ${path}`)
  }
  for (const [path, options] of Object.entries(spec.scratch)) {
    if (!isOwnPath(path) || !isScratch(options))
      throw new Rejected(`no scratch directory may be at ${path} with ${options}`)
  }
  for (const { network } of spec.networks)
    if (!ownName.test(network)) throw new Rejected(`the network ${network} does not have a name of Tenantry`)
  if (spec.published.length > 0) checkPublished(spec, labels, rules)
  if (spec.name.endsWith(helperSuffix)) checkHelper(spec)
}

/**
 * Whether a path is one where the images store data, secrets or temporary files, and never a program or a kernel file.
 */
function isOwnPath(path: string): boolean {
  return /^\/(?:tmp|run|var\/lib|tenantry)(?:\/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$/.test(path)
}

function isScratch(options: string): boolean {
  return options
    .split(',')
    .every((option) => /^(?:size=\d{1,12}[kmg]?|mode=[01]?[0-7]{3}|[ug]id=\d{1,5})$/.test(option))
}

function checkPublished({ published }: ContainerSpec, { stack, service }: Labels, rules: ProxyRules): void {
  // A region on several hosts has one gateway on each, whose name contains that of the host.
  const isGateway = rules.spansHosts ? service?.startsWith('gateway-') === true : service === 'gateway'
  if (!stack.startsWith('region-') || !isGateway) throw new Rejected('only the gateway of a region may publish ports')
  const inside: readonly number[] = [ports.gateway, ports.postgresProxy]
  for (const { containerPort, hostAddress, hostPort } of published) {
    if (!inside.includes(containerPort)) throw new Rejected(`the port ${containerPort} must not be published`)
    if (!rules.published.includes(`${hostAddress}:${hostPort}`))
      throw new Rejected(`no port may be published at ${hostAddress}:${hostPort}`)
  }
}

function checkHelper({ name, volumes, networks, published, scratch }: ContainerSpec): void {
  const [only, ...more] = volumes
  const isHelper =
    only !== undefined &&
    more.length === 0 &&
    name === `${only.volume}${helperSuffix}` &&
    only.path === '/tenantry/files'
  if (!isHelper || networks.length > 0 || published.length > 0 || Object.keys(scratch).length > 0) {
    throw new Rejected('a container for files has exactly one volume, and no networks, ports and scratch directories')
  }
}
