// The public interface of `tenants/`.
export { chooseIsolation } from './choose-isolation.ts'
export { engineOf, requireBackups, requireDedicated } from './dedicated.ts'
export { deleteOldOperations } from './jobs-old-operations.ts'
export { liveSecrets } from './live-secrets.ts'
export { foundTenant, regionOf } from './lookup.ts'
export { checkName, warmName } from './names.ts'
export { newSecrets } from './new-secrets.ts'
export type { StoredReader } from './plan-fit.ts'
export { addChangeTenant, type ChangeTenantDeps } from './routes-change.ts'
export { addCreateTenant, type CreateTenantDeps } from './routes-create.ts'
export { addOperationRoutes, type OperationRoutesDeps } from './routes-operations.ts'
export { requireRoom, type RoomDeps, type WantedRoom } from './require-room.ts'
export { addReadTenants, type ReadTenantsDeps } from './routes-read.ts'
export { addJwksRoutes, type JwksDeps } from './routes-jwks.ts'
export { addRotateTenant, type RotateDeps } from './routes-rotate.ts'
export { addRunTenant, type RunTenantDeps } from './routes-run.ts'
export { addSwitchover, type SwitchoverDeps } from './routes-switchover.ts'
export { createTenantNames } from './store-names.ts'
export { incrementGeneration, recordWanted } from './store-raise-led.ts'
export {
  toConditions,
  toDriftRepair,
  toOperation,
  toPublicKeys,
  toSizes,
  toSwitchover,
  toTenant,
} from './store-rows.ts'
export { readSecretsText, secretsText } from './store-secrets-text.ts'
export { createOldOperations } from './store-old-operations.ts'
export { createRunningTenants, type RunningTenant, type RunningTenants } from './store-running.ts'
export {
  homesPerDatabase,
  sharedDatabaseFor,
  sharedDatabaseName,
  sharedDatabaseNamed,
} from './store-shared-databases.ts'
export { sizesAfter } from './store-change.ts'
export { createTenantStore, type TenantStore } from './store.ts'
export { KeysBody, OperationBody, TenantBody, toOperationBody, toTenantBody } from './tenant-body.ts'
export type { SizeChange, TenantState, TenantWrite } from './tenant-write.ts'
export {
  alongsideGenerations,
  type ComponentSizes,
  type Condition,
  type Desired,
  driftPolicies,
  type DriftPolicy,
  type DriftRepair,
  type Operation,
  type OperationKind,
  type SecretKind,
  type ServiceMove,
  type Status,
  type Switchover,
  type Tenant,
} from './tenant.ts'
export { type WaitDeps, waitUntilSettled } from './wait.ts'
export { ChangedTenant, tenantStateBody, toChangedTenant, toTenantStateBody } from './written-tenant.ts'
