// The steps of a reload while they are planned, and the statements that several of them share. Pure.
import { identifier } from '../sql/names.ts'
import type { SchemaDefinition } from './collection.ts'
import type { Constraint } from './table-parts.ts'

export interface Applied {
  definition: SchemaDefinition
  published: boolean
}

export interface Step {
  sql: string
  /** A value that does not fit is one of this field: `collection.field`. */
  field?: string
}

/** Steps in the order in which they can be done, whatever refers to what. */
export const phases = ['unlink', 'detach', 'drop', 'create', 'convert', 'alter', 'index', 'refer', 'guard'] as const
export type Phases = Record<(typeof phases)[number], Step[]>

/** What is known of one collection while its steps are planned. */
export interface Draft {
  phases: Phases
  actions: string[]
  destructive: string[]
}

export function emptyDraft(): Draft {
  return {
    phases: { unlink: [], detach: [], drop: [], create: [], convert: [], alter: [], index: [], refer: [], guard: [] },
    actions: [],
    destructive: [],
  }
}

export function alterSql(name: string, parts: readonly string[]): string {
  return `alter table ${identifier(name)} ${parts.join(', ')}`
}

export function dropConstraintSql(name: string): string {
  return `drop constraint ${identifier(name)}`
}

export function addConstraintSql({ name, sql }: Constraint): string {
  return `add constraint ${identifier(name)} ${sql}`
}
