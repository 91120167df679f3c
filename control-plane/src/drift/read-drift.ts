// Looks at what exists of a tenant on its engine, beside what should. A tenant without services of its own has nothing there.
import { differences, type Difference, EngineError, askEngine } from '../engines/index.ts'
import type { DriftReader } from './drift-reader.ts'
import { sightOf, type SightDeps, type TenantSight } from '../health/index.ts'

/** Nothing was begun for it, so there is no specification to compare with. */
const notBegun: Difference = { component: 'services', field: 'existence', desired: 'present', observed: 'absent' }

/** Makes the reader of a tenant's drift. A tenant without services of its own never has any. */
export function createDriftReader(deps: SightDeps): DriftReader {
  return {
    async read(tenant) {
      const found =
        tenant.isolation === 'schema-per-tenant' ? [] : await differencesOf(deps, await sightOf(deps, tenant))
      return {
        tenant_id: tenant.id,
        policy: tenant.driftPolicy,
        observed_at: deps.clock.now().toISOString(),
        drifted: found.length > 0,
        differences: found,
      }
    },
  }
}

async function differencesOf({ clock }: SightDeps, sight: TenantSight | undefined): Promise<Difference[]> {
  if (sight?.engine === undefined) throw new EngineError('ENGINE_FAILED', "the tenant's region has no engine now")
  const { snapshot, region, engine } = sight
  if (snapshot.images === undefined || snapshot.subnet === undefined) return [notBegun]
  return askEngine(clock, async (signal) => {
    const [stack, host] = await Promise.all([region.stack(snapshot, signal), engine.observe(snapshot.id, signal)])
    return differences(stack, host)
  })
}
