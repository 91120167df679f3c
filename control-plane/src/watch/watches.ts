// What the watches send: routes and manifests of tenants, and blocked addresses.
import type { BlockedAddress, Route, TenantManifest } from '@tenantry/contract'
import type { ChangeListener } from '../platform/change-feed.ts'
import { WatchHub, type EntrySource } from './watch-hub.ts'

/** An entry of the watches of tenants: the parts that gateways and runtimes receive about one tenant. */
export interface Published {
  tenantId: string
  /** A text that differs whenever the route or the manifest does; undefined if that is not known. */
  version?: string
  /** ID of the tenant's region. */
  region: string
  readonly route: Route
  /** Manifest of the home; undefined until the home exists. */
  readonly manifest: TenantManifest | undefined
  /**
   * Number of the siblings of a runtime that receives the manifest, in a region on several hosts. While a tenant moves between a single
   * database and a cluster, the runtimes of both run there, with different files. Absent: all own runtimes receive it.
   */
  readonly siblings?: number | undefined
}

/** Reads the published entries of tenants. */
export type PublishedSource = EntrySource<Published>

/** The senders of all watches. */
export type Watches = ReturnType<typeof createWatches>

/**
 * Kinds of a tenant's own runtimes: that of a single database, those of a cluster, and runtimes of an earlier version, which do not report
 * what they are.
 */
const ownKinds = ['own manifest of one runtime', 'own manifest of several runtimes', 'own manifest'] as const
type OwnKind = (typeof ownKinds)[number]

/** Kinds of watchers: gateways, shared runtimes of all regions or of one, and tenants' own runtimes. */
export type WatchKind = 'route' | 'manifest' | `manifest of ${string}` | OwnKind

/**
 * Returns the kind of a runtime of a tenant's own.
 * @param siblings number of other runtimes with which it serves the tenant; undefined if it does not report it
 */
export function ownKindOf(siblings: number | undefined): OwnKind {
  if (siblings === undefined) return 'own manifest'
  return siblings > 0 ? 'own manifest of several runtimes' : 'own manifest of one runtime'
}

/**
 * Returns the part of an entry. A runtime receives only tenants that it serves. A member of the entry is read only if it is
 * needed: it may be made at that moment.
 */
function partOf(entry: Published, kind: WatchKind): object | undefined {
  if (kind === 'route') return entry.route
  const own = ownKinds.find((one) => one === kind)
  if (own === undefined && kind !== 'manifest' && kind !== `manifest of ${entry.region}`) return undefined
  if (entry.route.dedicated !== (own !== undefined)) return undefined
  return own === undefined || isOfOwn(own, entry.siblings) ? entry.manifest : undefined
}

function isOfOwn(kind: OwnKind, siblings: number | undefined): boolean {
  return siblings === undefined || kind === 'own manifest' || kind === ownKindOf(siblings)
}

/** Creates the senders of all watches. @param regions IDs of all regions. @param now returns the time, which limits the parts of a set */
export function createWatches(
  tenants: PublishedSource,
  addresses: EntrySource<BlockedAddress>,
  regions: readonly string[],
  now: () => Date,
  onError: (error: Error) => void,
) {
  const hubs = {
    tenants: new WatchHub<Published, WatchKind>({
      source: tenants,
      kinds: ['route', 'manifest', ...regions.map((id) => `manifest of ${id}` as const), ...ownKinds],
      idOf: ({ tenantId }) => tenantId,
      partOf,
      isSame: (entry, before) => entry.version !== undefined && entry.version === before.version,
      key: 'tenant_id',
      isRelevant: ({ kind }) => kind === 'wanted' || kind === 'published',
      now,
      onError,
    }),
    addresses: new WatchHub({
      source: addresses,
      kinds: ['address'],
      idOf: ({ address }) => address,
      partOf: (entry) => entry,
      isSame: () => false,
      key: 'address',
      isRelevant: ({ kind }) => kind === 'blocked',
      now,
      onError,
    }),
  }
  const onChange: ChangeListener = (change) => {
    hubs.tenants.onChange(change)
    hubs.addresses.onChange(change)
  }
  return {
    ...hubs,
    regions,
    /** Handles every event of the change feed. */
    onChange,
    /** Sends a heartbeat to every watch. The caller repeats it every `watchPingSeconds`. */
    ping(): void {
      hubs.tenants.ping()
      hubs.addresses.ping()
    },
  }
}
