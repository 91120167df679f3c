// The check that the hosts of a region have memory for a tenant's own services, before anything is created.
import { ControlError } from '../platform/errors.ts'
import type { Isolation } from '../stacks/index.ts'
import type { ComponentSizes } from './tenant.ts'

/** A tenant that is to get services in a region. */
export interface WantedRoom {
  plan: string
  /** Its own sizes; absent: those of the plan. */
  sizes?: ComponentSizes | undefined
  isolation: Isolation
  /** Whether it becomes one that was created in advance, if there is one. Absent: it does. */
  takesWarm?: boolean
}

/** Knows how much memory of regions with several hosts is reserved. */
export interface RoomDeps {
  /** Whether the hosts of a region have memory that is not reserved for another tenant's own services. */
  hasRoom(region: string, wanted: WantedRoom): Promise<boolean>
}

/** Checks that a region can receive services that a tenant does not have there yet. @throws ControlError REGION_FULL */
export async function requireRoom(deps: RoomDeps, region: string, wanted: WantedRoom): Promise<void> {
  if (await deps.hasRoom(region, wanted)) return
  throw new ControlError(
    'REGION_FULL',
    `No host of the region "${region}" has enough memory that is not reserved, for a tenant with the plan ${wanted.plan} ` +
      `and the isolation ${wanted.isolation}.`,
  )
}
