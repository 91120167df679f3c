// The steps of a reload during planning, and the statements that several of them share. Pure.
import { identifier } from '../sql/names.ts'
import type { SchemaDefinition } from './collection.ts'
import type { Constraint } from './table-parts.ts'

export interface Applied {
  definition: SchemaDefinition
  published: boolean
}

export interface Step {
  sql: string
  /** The field, as `collection.field`, to which an error of an invalid value refers. */
  field?: string
}

/** The phases in the order in which their steps can run, whatever references exist. */
export const phases = ['unlink', 'detach', 'drop', 'create', 'convert', 'alter', 'index', 'refer', 'guard'] as const
export type Phases = Record<(typeof phases)[number], Step[]>

/** The steps that are planned so far. */
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
