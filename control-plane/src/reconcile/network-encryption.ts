// Whether the traffic between the hosts of a region is encrypted, as its condition states it. Pure.
import type { ObservedHost } from '../engines/index.ts'
import type { RegionCondition } from '../regions/index.ts'
import { type ContainerSettings, hasEncryptedNetworks, hostsOf, parseRange, subnetNumber } from '../stacks/index.ts'

/** The condition `Encrypted`, without what is the same for all conditions. */
type Encryption = Pick<RegionCondition, 'status' | 'reason' | 'message'>

const privateLink =
  'The hosts need a private link that encrypts, such as WireGuard. Replication between members of Postgres and the traffic of etcd have ' +
  'TLS in any case.'
/** Maximum number of names in a message. */
const maxNames = 3

/**
 * Returns whether the engines encrypt the traffic between the hosts; undefined in a region on one host.
 * @param stackId ID of the region's own stack
 * @param observed everything on the hosts
 */
export function networkEncryption(
  settings: ContainerSettings | undefined,
  stackId: string,
  { networks }: Pick<ObservedHost, 'networks'>,
): Encryption | undefined {
  if (settings === undefined || hostsOf(settings).length === 0) return undefined
  if (!hasEncryptedNetworks(settings)) return required('Docker does not encrypt the networks between the hosts.')
  const range = parseRange(settings.network_range, true)
  const plain = networks.filter(
    ({ labels, subnet, isEncrypted = false }) =>
      !isEncrypted && (labels.stack === stackId || subnetNumber(range, subnet) !== undefined),
  )
  if (plain.length === 0) return { status: 'True', reason: 'Observed', message: '' }
  const names = plain
    .map(({ name }) => name)
    .sort()
    .slice(0, maxNames)
  const more = plain.length > names.length ? ` and ${plain.length - names.length} more` : ''
  return required(`These networks were created without encryption: ${names.join(', ')}${more}.`)
}

function required(cause: string): Encryption {
  return { status: 'False', reason: 'PrivateLinkRequired', message: `${cause} ${privateLink}` }
}
