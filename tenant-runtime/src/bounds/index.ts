// The bounds on what this process holds in memory for all requests together.
export { ByteBudget, type Reservation, type Share } from './byte-budget.ts'
export { addMetrics } from './metrics.ts'
export { createBounds, type Bounds, type BoundsLimits } from './bounds.ts'
export { noRoom } from './no-room.ts'
export { Results, type ArrivingResult, type ResultOwner } from './results.ts'
