// A container that is asked for → the one that may be made: read back into our own terms and made anew by the hardening
// template, so that nothing passes which the template has no word for. Pure.
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

/** As much of the body as the template is fed with; whatever else it holds is compared afterwards. */
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

export interface Made {
  body: object
  claims: Claim[]
}

/** @throws Refused */
export function checkedContainer(name: string, given: unknown, rules: ProxyRules): Made {
  if (!Value.Check(Body, given)) throw new Rejected('the container is not one of the template')
  const spec = specOf(name, given)
  const body: unknown = JSON.parse(JSON.stringify(name.endsWith(helperSuffix) ? helperBody(spec) : containerBody(spec)))
  const difference = firstDifference(given, body)
  if (difference !== undefined) throw new Rejected(`the container is not as the template makes it: ${difference}`)
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

/** What `containerBody` was given, if it was `containerBody` that made this. */
function specOf(name: string, body: Body): ContainerSpec {
  const { Healthcheck: health, HostConfig: host } = body
  return {
    name,
    labels: fromDocker(body.Labels) ?? { installation: '', stack: '' },
    image: body.Image,
    command: body.Cmd,
    environment: Object.fromEntries(body.Env.map(variable)),
    user: body.User,
    volumes: host.Mounts.map(({ Source: volume, Target: path, ReadOnly: readOnly }) => ({ volume, path, readOnly })),
    scratch: host.Tmpfs,
    networks: Object.entries(body.NetworkingConfig?.EndpointsConfig ?? {}).map(
      ([network, { Aliases: aliases, IPAMConfig: location }]) => ({
        network,
        aliases,
        ...(location === undefined ? {} : { address: location.IPv4Address }),
      }),
    ),
    published: Object.entries(host.PortBindings).flatMap(([port, slots]) =>
      slots.map(({ HostIp: hostAddress, HostPort: hostPort }) => ({
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

function variable(text: string): [string, string] {
  const at = text.indexOf('=')
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

/** As engines/docker/volume-files.ts makes it: the Engine puts files only into a container whose root can be written. */
function helperBody(spec: ContainerSpec): object {
  const { HostConfig: host, ...body } = containerBody(spec)
  const mounts = host?.Mounts?.map((mount) => ({ ...mount, VolumeOptions: { NoCopy: true } }))
  return { ...body, HostConfig: { ...host, ReadonlyRootfs: false, Mounts: mounts } }
}

const user = /^[1-9]\d{0,4}:[1-9]\d{0,4}$/
const imageReference = /^[a-z0-9][a-z0-9._/:@-]{0,254}$/
const ownName = /^tenantry-[A-Za-z0-9_.-]{1,190}$/

/** What the template leaves open. */
function checkSpec(spec: ContainerSpec, rules: ProxyRules): void {
  const labels = ownLabels(spec.name, toDocker(spec.labels), rules)
  if (!user.test(spec.user)) throw new Rejected('a container runs as a user and a group by number, and never as root')
  if (!imageReference.test(spec.image)) throw new Rejected('its image cannot be read')
  for (const { volume, path } of spec.volumes) {
    if (!ownName.test(volume)) throw new Rejected('it may have volumes of ours alone')
    if (!isOwnPath(path)) throw new Rejected(`nothing may be mounted at ${path}`)
  }
  for (const [path, options] of Object.entries(spec.scratch)) {
    if (!isOwnPath(path) || !isScratch(options))
      throw new Rejected(`no scratch directory may be at ${path} with ${options}`)
  }
  for (const { network } of spec.networks)
    if (!ownName.test(network)) throw new Rejected('it may be on networks of ours alone')
  if (spec.published.length > 0) checkPublished(spec, labels, rules)
  if (spec.name.endsWith(helperSuffix)) checkHelper(spec)
}

/** Where the images keep data, secrets and what may be lost; never over a program or the kernel's own files. */
function isOwnPath(path: string): boolean {
  return /^\/(?:tmp|run|var\/lib|tenantry)(?:\/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$/.test(path)
}

function isScratch(options: string): boolean {
  return options
    .split(',')
    .every((option) => /^(?:size=\d{1,12}[kmg]?|mode=[01]?[0-7]{3}|[ug]id=\d{1,5})$/.test(option))
}

function checkPublished({ published }: ContainerSpec, { stack, service }: Labels, rules: ProxyRules): void {
  if (!stack.startsWith('region-') || service !== 'gateway')
    throw new Rejected('ports are published by the gateway of a region alone')
  const inside: readonly number[] = [ports.gateway, ports.postgresProxy]
  for (const { containerPort, hostAddress, hostPort } of published) {
    if (!inside.includes(containerPort)) throw new Rejected(`the port ${containerPort} is not for outside`)
    if (!rules.published.includes(`${hostAddress}:${hostPort}`))
      throw new Rejected(`nothing may be published at ${hostAddress}:${hostPort}`)
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
    throw new Rejected('a container for files has its one volume and nothing else')
  }
}
