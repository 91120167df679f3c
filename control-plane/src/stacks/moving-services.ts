// Services of another isolation model that a tenant has during a move between two kinds of its own services, as they are stored.
import { Type, type Static } from 'typebox'

export const MovingServices = Type.Object({
  isolation: Type.Enum(['database-per-tenant', 'cluster-per-tenant']),
  /** Digests of the images. */
  images: Type.Object({ postgres: Type.String(), runtime: Type.String() }),
  /** Whether the move removes them. */
  isEnding: Type.Optional(Type.Boolean()),
})
export type MovingServices = Static<typeof MovingServices>
