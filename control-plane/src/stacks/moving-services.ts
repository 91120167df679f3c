// Services of another isolation model than its own that a tenant has during a move, as the control database has them.
import { Type, type Static } from 'typebox'

/** The column `moving_services` of a tenant. */
export const MovingServices = Type.Object({
  isolation: Type.Enum(['database-per-tenant', 'cluster-per-tenant']),
  /** Digests of the images. */
  images: Type.Object({ postgres: Type.String(), runtime: Type.String() }),
  /** Whether the move removes them. */
  isEnding: Type.Optional(Type.Boolean()),
})
/** Services that a tenant has in addition to those of its own model. */
export type MovingServices = Static<typeof MovingServices>
