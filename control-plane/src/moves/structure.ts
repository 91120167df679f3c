// The structure of a home as text, for comparisons. Pure.
import { createHash } from 'node:crypto'
import type { HomeObjects } from '../backups/index.ts'

/**
 * Returns the definitions of all objects of a home. The order in which they can be created is left out: objects that do not
 * depend on each other have one that changes with the plans of the queries.
 */
export function structureText({ entries, tables, sequences }: HomeObjects): string {
  const sorted = (parts: readonly unknown[]) => parts.map((part) => JSON.stringify(part)).sort()
  return JSON.stringify([sorted(entries), sorted(tables), sorted(sequences)])
}

/** Returns a hash of the definitions of all objects of a home. */
export function structureHash(objects: HomeObjects): string {
  return createHash('sha256').update(structureText(objects)).digest('hex')
}
