// Reads a file of tenants for `apply`: YAML whose names and types are checked before any request is sent.
import type { TenantChange } from '@tenantry/client'
import { parseDocument } from 'yaml'
import { usageError } from '../terminal/exit-codes.ts'

/** A tenant as the file declares it. Settings that are not declared stay as they are. */
export interface DeclaredTenant {
  readonly name: string
  readonly plan: string
  readonly region: string
  readonly isolation?: Isolation
  /** The declared settings, except name and plan. */
  readonly settings: Settings
}

type Isolation = 'schema-per-tenant' | 'database-per-tenant' | 'cluster-per-tenant'
type Settings = Omit<TenantChange, 'name' | 'plan' | 'isolation' | 'region'>

const maxTenants = 10_000
const required = ['name', 'plan', 'region'] as const
/** The isolation models, the weakest first. */
export const isolations = ['schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant'] as const

/** The types that a setting may have. The API checks its value. */
const settingTypes: { readonly [Name in keyof Settings]-?: readonly string[] } = {
  suspended: ['boolean'],
  suspend_reason: ['string', 'null'],
  payment_required: ['boolean'],
  drift_policy: ['string'],
  // A tenant shows the limits in effect, so a reset would always differ.
  resources: ['object'],
  pause_after_seconds: ['number', 'null'],
  backup_schedule: ['string', 'null'],
  backups_kept: ['number'],
  archive_days: ['number', 'null'],
  rate_limit: ['object', 'string', 'null'],
}

/** Returns the tenants of a file. @throws CommandError that names the position of what is wrong */
export function readManifest(text: string, file: string): DeclaredTenant[] {
  const document = parseDocument(text, { prettyErrors: true })
  const [error] = document.errors
  if (error !== undefined) throw usageError(`${file} is not valid YAML: ${error.message.split('\n')[0] ?? ''}`)
  const value: unknown = document.toJS({ maxAliasCount: 100 })
  if (!isObject(value)) throw usageError(`${file} must contain the list "tenants".`)
  const { tenants, ...rest } = value
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) throw usageError(`Unknown field "${unknown.slice(0, 100)}" in ${file}. Allowed: tenants.`)
  if (!Array.isArray(tenants)) throw usageError(`${file} must contain the list "tenants".`)
  if (tenants.length > maxTenants) throw usageError(`${file} has ${tenants.length} tenants. Allowed: ${maxTenants}.`)
  const declared = tenants.map((entry: unknown, at) => readTenant(entry, `${file}: tenants[${at}]`))
  const names = new Set<string>()
  for (const { name } of declared) {
    if (names.has(name)) throw usageError(`${file} declares the tenant "${name}" twice.`)
    names.add(name)
  }
  return declared
}

function readTenant(entry: unknown, path: string): DeclaredTenant {
  if (!isObject(entry)) throw usageError(`${path} must be a tenant with name, plan and region.`)
  for (const name of required)
    if (typeof entry[name] !== 'string' || entry[name] === '') throw usageError(`${path}.${name} must be a text.`)
  const { name, plan, region, isolation, ...rest } = entry as Record<(typeof required)[number], string> &
    Record<string, unknown>
  const model = isolations.find((one) => one === isolation)
  if (isolation !== undefined && model === undefined)
    throw usageError(`${path}.isolation must be one of ${isolations.join(', ')}.`)
  for (const [setting, value] of Object.entries(rest)) {
    const types = Object.hasOwn(settingTypes, setting) ? settingTypes[setting as keyof Settings] : undefined
    if (types === undefined)
      throw usageError(
        `${path} has the unknown field "${setting.slice(0, 100)}". Allowed: ` +
          `${[...required, 'isolation', ...Object.keys(settingTypes)].join(', ')}.`,
      )
    const type = value === null ? 'null' : typeof value
    if (!types.includes(type))
      throw usageError(`${path}.${setting} must be of the type ${types.join(' or ')}, not ${type}.`)
  }
  return { name, plan, region, ...(model === undefined ? {} : { isolation: model }), settings: rest }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
