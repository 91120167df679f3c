// The memory bounds of the services, as docs/security.md states them.
import type { Target } from './target.ts'

const platform = { gateway: 500e6, 'control-plane': 500e6, 'control-database': 500e6 }
const sharedServices = { ...platform, runtime: 1_200e6, functions: 4_000e6, postgres: 3_000e6 }

/** The container of a region's Postgres also holds its buffers: an eighth of its 3 GiB. */
const regionServices = { ...sharedServices, functions: 1_000e6, postgres: 2_800e6 }

/** Maximum private memory of all processes of a service in bytes, under any attack of the suite. */
const bounds: Record<Target, Readonly<Record<string, number>>> = {
  'npm start': sharedServices,
  'shared Postgres': regionServices,
  // Containers of the plans Free and Pro.
  'own Postgres': {
    ...regionServices,
    'tenant-postgres': 1_075e6,
    'tenant-runtime': 1_075e6,
    'tenant-functions': 1_075e6,
  },
}

/** Returns the bounds of all services of a target. */
export const boundsOf = (target: Target): Readonly<Record<string, number>> => bounds[target]
