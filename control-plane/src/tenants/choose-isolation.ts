// Chooses the isolation model of a new tenant.
import { isolationsOf, planIsolationsOf } from '../engines/index.ts'
import { ControlError } from '../platform/errors.ts'
import type { RegionConfig } from '../regions/index.ts'
import { isolationInRegion, type Isolation } from '../stacks/index.ts'

/**
 * Returns the requested isolation model, or by default the wanted one or the strongest that the region supports.
 * @throws ControlError UNSUPPORTED_ISOLATION
 */
export function chooseIsolation(
  requested: Isolation | undefined,
  wanted: Isolation,
  region: Pick<RegionConfig, 'id' | 'engine' | 'docker' | 'processes'>,
): Isolation {
  const possible = isolationsOf(region)
  if (requested !== undefined) {
    if (possible.includes(requested)) return requested
    throw new ControlError(
      'UNSUPPORTED_ISOLATION',
      `Invalid isolation "${requested}" in the region "${region.id}", which uses the engine "${region.engine}". ` +
        `Allowed: ${possible.join(', ')}.${whyFew(region)}`,
    )
  }
  const chosen = isolationInRegion(wanted, planIsolationsOf(region))
  if (chosen === undefined)
    throw new ControlError('UNSUPPORTED_ISOLATION', `The region "${region.id}" supports no isolation for tenants.`)
  return chosen
}

/** Returns why a region supports few models, as a sentence after a space; an empty text for another region. */
function whyFew({ engine, docker }: Pick<RegionConfig, 'engine' | 'docker'>): string {
  if (engine !== 'swarm' || docker?.storage !== undefined) return ''
  return ' Others need "storage": runtimes on several hosts have their files in S3.'
}
