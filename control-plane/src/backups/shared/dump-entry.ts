// An entry of a dump: a statement that creates one object of a home. It contains no name of a schema, because it runs with
// the home's schema as search path, and no name of the home's roles. Pure.
import { homeRoles, type HomeRole } from '../../homes/index.ts'
import { identifier, literal } from '../../platform/identifiers.ts'

/** A part of a statement: text, a role of the home, or the ID of the tenant as a literal. */
export type StatementPart = string | { role: HomeRole | 'public' } | { tenant: true }

export interface DumpEntry {
  kind: string
  /** The name and the properties that stay the same when the object is created from its statement and read again. */
  identity: string
  /** `before` the rows or `after` them. A default privilege is for the superuser, after the change of owners. */
  phase: 'before' | 'after' | 'default'
  statement: StatementPart[]
}

/** The rows of a table. Service tables exist before the dump is loaded. */
export interface DumpTable {
  name: string
  columns: string[]
  isService: boolean
}

export interface DumpHeader {
  version: 1
  /** The newest home migration that the home had. */
  homeVersion: number
}

export interface DumpSequence {
  name: string
  isService: boolean
  value: string
  isCalled: boolean
}

/** Returns the text of a statement for a home. */
export function statementText(parts: readonly StatementPart[], homeId: string): string {
  const roles = homeRoles(homeId)
  return parts
    .map((part) => {
      if (typeof part === 'string') return part
      if ('tenant' in part) return literal(homeId)
      return part.role === 'public' ? 'public' : identifier(roles[part.role])
    })
    .join('')
}

/** Returns the role of a home that has this name; undefined for any other role. */
export function roleNamed(homeId: string, name: string): HomeRole | 'public' | undefined {
  if (name === 'public') return 'public'
  const roles = homeRoles(homeId)
  return (Object.keys(roles) as HomeRole[]).find((kind) => roles[kind] === name)
}
