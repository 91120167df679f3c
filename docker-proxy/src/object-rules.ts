// Validates the bodies of calls that create or change objects other than containers. Each is validated completely, and
// unknown fields are rejected. Pure.
import { Type, type TProperties, type TSchema, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { restartPolicy } from '../../control-plane/src/engines/index.ts'
import type { Claim } from './claims.ts'
import type { ProxyRules } from './proxy-rules.ts'
import { ownLabels } from './owned-labels.ts'
import { Rejected } from './rejected.ts'

/** A body that was validated, with the requirements of the objects that it names. */
export interface Checked {
  body: object
  claims: Claim[]
  /** The object of the path, if it depends on the body. */
  subject?: Claim
}

const closed = { additionalProperties: false }
const Labels = Type.Record(Type.String(), Type.String())

const Volume = Type.Object({ Name: Type.String(), Driver: Type.Literal('local'), Labels }, closed)

/** Validates a new volume. It may have no options, because those of `local` can mount any path of the host. */
export function checkedVolume(given: unknown, rules: ProxyRules): Checked {
  const body = read(Volume, given, 'the volume')
  ownLabels(body.Name, body.Labels, rules)
  return { body, claims: [] }
}

/** The fields that networks on one host and on several have in common. */
const commonNetwork = {
  Name: Type.String(),
  CheckDuplicate: Type.Literal(true),
  Internal: Type.Boolean(),
  EnableIPv6: Type.Literal(false),
  Labels,
}
const addressesOf = <T extends TProperties>(fields: T) =>
  Type.Object(
    {
      Driver: Type.Literal('default'),
      Config: Type.Array(Type.Object(fields, closed), { minItems: 1, maxItems: 1 }),
    },
    closed,
  )

const BridgeNetwork = Type.Object(
  {
    ...commonNetwork,
    Driver: Type.Literal('bridge'),
    Attachable: Type.Literal(false),
    IPAM: addressesOf({ Subnet: Type.String() }),
    Options: Type.Object({ 'com.docker.network.bridge.inhibit_ipv4': Type.Optional(Type.Literal('true')) }, closed),
  },
  closed,
)

/** A network of a swarm. Containers of all hosts can join it, and services of the swarm, which the proxy does not create. */
const OverlayNetwork = Type.Object(
  {
    ...commonNetwork,
    Driver: Type.Literal('overlay'),
    Attachable: Type.Literal(true),
    IPAM: addressesOf({ Subnet: Type.String(), IPRange: Type.Optional(Type.String()) }),
    Options: Type.Object({ encrypted: Type.Optional(Type.Literal('')) }, closed),
  },
  closed,
)

/** Validates a new network: an overlay network if the region has several hosts, otherwise one of this host. */
export function checkedNetwork(given: unknown, rules: ProxyRules): Checked {
  const body = rules.spansHosts ? read(OverlayNetwork, given, 'the network') : read(BridgeNetwork, given, 'the network')
  const { stack } = ownLabels(body.Name, body.Labels, rules)
  const mayBeExternal =
    rules.published.length > 0 && stack.startsWith('region-') && body.Name === `tenantry-${stack}-door`
  if (!body.Internal && !mayBeExternal) throw new Rejected('the network is not internal')
  const [addresses] = body.IPAM.Config
  const subnet = parseSubnet(addresses?.Subnet ?? '')
  if (!isWithin(subnet, rules.networkRange)) throw new Rejected('the subnet is not in the range of this installation')
  if (addresses !== undefined && 'IPRange' in addresses && !isWithin(parseSubnet(addresses.IPRange ?? ''), subnet))
    throw new Rejected('the range of the assigned addresses is not in the subnet')
  return { body, claims: [] }
}

type Subnet = Pick<ProxyRules['networkRange'], 'first' | 'prefix'>

/** Parses a subnet, which begins at a multiple of its size. @throws Rejected */
function parseSubnet(text: string): Subnet {
  const [, address = '', length = ''] = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d{2})$/.exec(text) ?? []
  const octets = address.split('.').map(Number)
  const first = octets.reduce((sum, octet) => sum * 256 + octet, 0)
  const prefix = Number(length)
  const isSubnet =
    octets.length === 4 && octets.every((octet) => octet <= 255) && prefix <= 30 && first % 2 ** (32 - prefix) === 0
  if (!isSubnet) throw new Rejected('the subnet is not valid')
  return { first, prefix }
}

function isWithin(inner: Subnet, outer: Subnet): boolean {
  return (
    inner.prefix >= outer.prefix && inner.first >= outer.first && inner.first < outer.first + 2 ** (32 - outer.prefix)
  )
}

const Limit = Type.Integer({ minimum: 1 })
const Limits = Type.Object(
  {
    Memory: Type.Optional(Limit),
    MemorySwap: Type.Optional(Limit),
    NanoCpus: Type.Optional(Limit),
    PidsLimit: Type.Optional(Limit),
    RestartPolicy: Type.Optional(Type.Object({ Name: Type.Literal(restartPolicy) }, closed)),
  },
  closed,
)

/** Validates a change of limits, none of which may be removed. */
export function checkedLimits(given: unknown): Checked {
  const body = read(Limits, given, 'the change')
  if (body.MemorySwap !== body.Memory) throw new Rejected('a container must not have swap')
  return { body, claims: [] }
}

const Name = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,200}$' })
const Endpoint = Type.Object(
  {
    Aliases: Type.Array(Type.String({ pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}$' }), { maxItems: 8 }),
    IPAMConfig: Type.Optional(Type.Object({ IPv4Address: Type.String({ pattern: '^[0-9.]{7,15}$' }) }, closed)),
  },
  closed,
)
const Connection = Type.Object({ Container: Name, EndpointConfig: Endpoint }, closed)

export function checkedConnection(given: unknown): Checked {
  const body = read(Connection, given, 'the connection')
  return { body, claims: [{ kind: 'container', name: body.Container, may: 'be attached' }] }
}

const Disconnection = Type.Object({ Container: Name, Force: Type.Literal(true) }, closed)

/** Validates a disconnection. Any container may leave a network of Tenantry, and a container of Tenantry any network. */
export function checkedDisconnection(given: unknown, network: string): Checked {
  const body = read(Disconnection, given, 'the disconnection')
  return { body, claims: [], subject: { kind: 'membership', name: network, container: body.Container } }
}

const Command = Type.Object(
  {
    AttachStdin: Type.Boolean(),
    AttachStdout: Type.Literal(true),
    AttachStderr: Type.Literal(true),
    Tty: Type.Literal(false),
    Cmd: Type.Array(Type.String(), { minItems: 1, maxItems: 1_000 }),
  },
  closed,
)

/** Validates a command, which runs as the container's own user, with its rights and environment. */
export function checkedCommand(given: unknown): Checked {
  return { body: read(Command, given, 'the command'), claims: [] }
}

const Start = Type.Object({ Detach: Type.Literal(false), Tty: Type.Literal(false) }, closed)

export function checkedStart(given: unknown): Checked {
  return { body: read(Start, given, 'the start'), claims: [] }
}

function read<T extends TSchema>(schema: T, given: unknown, what: string): Static<T> {
  if (Value.Check(schema, given)) return given
  const [first] = Value.Errors(schema, given)
  throw new Rejected(`${what} is not valid${first === undefined ? '' : `: ${first.instancePath} ${first.message}`}`)
}
