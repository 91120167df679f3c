// What the API asks of the place where tenants are kept. Every write is one transaction that carries the change,
// its operation, its audit entry and, when there is an Idempotency-Key, its answer.
import type { Isolation, Operation, OperationKind, SecretKind, Status, Tenant } from './tenant.ts'

/** Who writes, for the audit log: a platform key's id. */
export interface Actor {
  keyId: string
}

/** An `Idempotency-Key` with what it stands for. */
export interface Idempotency {
  key: string
  /** SHA-256 of method, path and body. */
  fingerprint: string
}

export interface WriteContext {
  actor: Actor
  idempotency: Idempotency | undefined
}

export interface NewTenant {
  id: string
  name: string
  plan: string
  region: string
  isolation: Isolation
  secrets: Record<SecretKind, string>
}

export interface TenantChange {
  name?: string
  plan?: string
  isolation?: Isolation
  suspended?: boolean
}

export interface TenantFilter {
  plan?: string
  region?: string
  status?: Status
  namePrefix?: string
}

export interface Page<Item> {
  items: Item[]
  /** Opaque; undefined on the last page. */
  nextCursor: string | undefined
}

export interface PageRequest {
  limit: number
  cursor: string | undefined
}

export interface TenantWrite {
  tenant: Tenant
  operation: Operation
}

export interface TenantStore {
  /** @throws ControlError NAME_TAKEN, UNKNOWN_PLAN, UNKNOWN_REGION */
  create(tenant: NewTenant, context: WriteContext, answer: (write: TenantWrite) => unknown): Promise<TenantWrite>
  get(id: string): Promise<Tenant | undefined>
  list(filter: TenantFilter, page: PageRequest): Promise<Page<Tenant>>
  /**
   * Raises the generation. `ifMatch` is the generation the caller has seen.
   * @throws ControlError TENANT_NOT_FOUND, STALE_ETAG, OPERATION_UNDER_WAY, TENANT_DELETED, NAME_TAKEN
   */
  update(id: string, change: TenantChange, ifMatch: number | undefined, context: WriteContext): Promise<TenantWrite>
  /** Supersedes whatever is under way. Asked again with an earlier `purgeAfter`, that holds. */
  requestDelete(id: string, purgeAfter: Date, ifMatch: number | undefined, context: WriteContext): Promise<TenantWrite>
  /** New API keys and a new token secret; the old ones are honoured until `expireAt`. */
  rotateKeys(id: string, secrets: Pick<Record<SecretKind, string>, 'jwt_secret' | 'publishable_key' | 'secret_key'>, expireAt: Date, context: WriteContext, answer: (write: TenantWrite) => unknown): Promise<TenantWrite>
  getOperation(id: string): Promise<Operation | undefined>
  listOperations(filter: { tenantId?: string; kind?: OperationKind; state?: Operation['state'] }, page: PageRequest): Promise<Page<Operation>>
  /** The answer given under this key before, if any. @throws ControlError IDEMPOTENCY_MISMATCH */
  replay(context: WriteContext): Promise<unknown>
  /** Replaces the kept answer by the one that was sent. */
  keepAnswer(context: WriteContext, answer: unknown): Promise<void>
}
