// The services of one isolation model, among all of a tenant. Pure.
import type { Isolation } from './isolation.ts'
import { serviceNames } from './stack-for.ts'

/**
 * Returns what concerns the services of one model. During a move, a tenant can have those of another model as well.
 * @param all values by the names of services
 */
export function ofModel<T>(all: Readonly<Record<string, T>>, isolation: Isolation): Readonly<Record<string, T>> {
  const names = new Set(serviceNames(isolation))
  return Object.fromEntries(Object.entries(all).filter(([name]) => names.has(name)))
}
