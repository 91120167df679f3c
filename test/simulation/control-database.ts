// The control database in memory: the API and the reconciler write to it, one transaction for each write, and listeners receive
// the changes.
import type { RoutePhase } from '@tenantry/contract'
import type { Snapshot } from '#control-plane/reconcile/reconcile-store.ts'
import type { Change } from '#control-plane/platform/change-feed.ts'
import type { HostState } from '#control-plane/placement/host-state.ts'
import type { OperationKind, Switchover } from '#control-plane/tenants/tenant.ts'

export interface TenantRow extends Omit<
  Snapshot,
  'subnet' | 'operation' | 'nextExpiry' | 'hasExpired' | 'homeVersion' | 'purgeAfter' | 'images'
> {
  homeVersion: string | null
  purgeAfter: Date | null
  /** Desired state before its deletion. */
  desiredBeforeDelete: Snapshot['desired'] | null
  /** Whether its data may be destroyed, so that its deletion cannot be reverted. */
  isPurgeBegun: boolean
  images: Snapshot['images'] | null
  /** Memory that its services reserve on hosts. */
  reserved: Record<string, number>
  reason: string | null
  /** Times at which rotated secrets expire. */
  expiries: Date[]
  /** Whether a home was ever recorded, so that it may hold data. */
  hadHome: boolean
}

export interface OperationRow {
  id: string
  tenantId: string
  kind: OperationKind
  generation: number
  state: 'pending' | 'running' | 'succeeded' | 'failed' | 'superseded'
  attempts: number
  step: string | null
  error: string | null
  switchover?: Switchover
}

/** A tenant's state as watches send it. */
export interface Published {
  generation: number
  phase: RoutePhase
  hasManifest: boolean
}

export type ControlDatabase = ReturnType<typeof createControlDatabase>

const secrets: Snapshot['secrets'] = {
  runtime_password: ['runtime'],
  ddl_password: ['ddl'],
  admin_password: ['admin'],
  jwt_secret: ['jwt'],
  signing_secret: ['signing'],
  publishable_key: ['publishable'],
  secret_key: ['secret'],
}

export function createControlDatabase(now: () => Date) {
  const tenants = new Map<string, TenantRow>()
  const operations = new Map<string, OperationRow>()
  const subnets = new Map<string, { regionId: string; number: number }>()
  /** States of hosts that receive no services. */
  const hostStates = new Map<string, Exclude<HostState, 'active'>>()
  const listeners = new Set<(change: Change) => void>()
  const state = { epoch: 0n, writes: 0 }
  let opened = 0

  const report = (change: Change) => {
    for (const listener of listeners) listener(change)
  }
  const isOpen = ({ state }: OperationRow) => state === 'pending' || state === 'running'
  const openOf = (tenantId: string) =>
    [...operations.values()].filter((operation) => operation.tenantId === tenantId && isOpen(operation))
  const open = (
    tenantId: string,
    kind: OperationKind,
    generation: number,
    details: { switchover?: Switchover } = {},
  ) => {
    const id = `operation-${++opened}`
    const operation = {
      id,
      tenantId,
      kind,
      generation,
      state: 'pending',
      attempts: 0,
      step: null,
      error: null,
    } as const
    operations.set(id, { ...operation, ...details })
  }

  return {
    tenants,
    operations,
    subnets,
    hostStates,
    state,
    report,
    isOpen,
    openOf,
    listen(listener: (change: Change) => void): () => void {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },

    create(tenant: Pick<TenantRow, 'id' | 'regionId' | 'isolation' | 'desired' | 'sizes'>): void {
      const { id, isolation } = tenant
      tenants.set(id, {
        ...tenant,
        name: id,
        status: 'pending',
        generation: 1,
        observedGeneration: 0,
        conditions: [],
        homeVersion: null,
        routePhase: 'pending',
        isSqlClosed: false,
        isHeld: false,
        databasePasswordDue: false,
        servicePasswordsDue: false,
        purgeAfter: null,
        desiredBeforeDelete: null,
        isPurgeBegun: false,
        database: isolation === 'schema-per-tenant' ? 'homes' : undefined,
        driftPolicy: 'repair',
        restarts: 0,
        isArchived: false,
        placement: {},
        reserved: {},
        images: null,
        secrets,
        reason: null,
        expiries: [],
        hadHome: false,
      })
      open(id, 'create', 1)
      report({ kind: 'wanted', subject: id })
    },
    /** Records a tenant that was deleted completely before the run. */
    recordDeleted(tenantId: string): void {
      open(tenantId, 'delete', 1)
      for (const operation of openOf(tenantId)) operation.state = 'succeeded'
    },
    /** Requests a change as the API does, which rejects it during another operation that has not failed. @returns whether it is accepted */
    requestChange(
      id: string,
      kind: OperationKind,
      change: Partial<TenantRow>,
      details: { switchover?: Switchover } = {},
    ): boolean {
      const row = tenants.get(id)
      if (row === undefined) return false
      const isRemoval = kind === 'delete' || kind === 'undelete'
      if (!isRemoval && (row.desired === 'deleted' || (openOf(id).length > 0 && row.status !== 'failed'))) return false
      for (const operation of openOf(id)) operation.state = 'superseded'
      Object.assign(row, change)
      row.generation++
      open(id, kind, row.generation, details)
      report({ kind: 'wanted', subject: id })
      return true
    },
    published(id: string): Published | undefined {
      const row = tenants.get(id)
      return row === undefined
        ? undefined
        : { generation: row.generation, phase: row.routePhase, hasManifest: row.homeVersion !== null }
    },
    snapshotOf(row: TenantRow, operation: Snapshot['operation'], subnet: number | undefined): Snapshot {
      const { homeVersion, purgeAfter, images, expiries, ...others } = row
      const { hadHome: _hadHome, desiredBeforeDelete: _before, isPurgeBegun: _isPurgeBegun, ...same } = others
      const live = expiries.filter((expiry) => expiry > now()).map((expiry) => expiry.getTime())
      return {
        ...same,
        conditions: [...row.conditions],
        homeVersion: homeVersion ?? undefined,
        purgeAfter: purgeAfter ?? undefined,
        images: images ?? undefined,
        subnet,
        operation,
        hasExpired: live.length < expiries.length,
        nextExpiry: live.length === 0 ? undefined : new Date(Math.min(...live)),
      }
    },
  }
}
