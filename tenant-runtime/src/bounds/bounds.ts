// All budgets of the runtime, and the share of each tenant and of anonymous callers.
import { ByteBudget, type Reservation } from './byte-budget.ts'
import { Results } from './results.ts'

export interface BoundsLimits {
  /** The memory for request bodies that are buffered, with what is parsed from them. */
  bodyBytes: number
  /** The memory for results that are buffered, until clients have received them. */
  resultBytes: number
}

/** A sender of a request. The address matters only for anonymous ones, because a single client can send any number of their requests. */
interface Sender {
  tenantId: string
  isAnonymous: boolean
  address: string
}

/** The budgets of one process. */
export interface Bounds {
  readonly bodies: ByteBudget
  readonly results: Results
  /** Opens a reservation of a request's body. */
  openBody(sender: Sender): Reservation
}

/** The parts of a budget that one tenant, all anonymous callers, and one address of them may have. */
const tenantPart = 1 / 3
const anonymousPart = 1 / 4
const addressPart = 1 / 16

/** Creates the budgets. */
export function createBounds({ bodyBytes, resultBytes }: BoundsLimits): Bounds {
  const bodies = new ByteBudget(bodyBytes)
  return {
    bodies,
    results: new Results(resultBytes, tenantPart),
    openBody: ({ tenantId, isAnonymous, address }) =>
      bodies.open(
        isAnonymous
          ? // They must not use up the share of the tenant's own users.
            [
              { name: 'address', key: address, maxBytes: bodyBytes * addressPart },
              { name: 'anonymous', key: '', maxBytes: bodyBytes * anonymousPart },
            ]
          : [{ name: 'tenant', key: tenantId, maxBytes: bodyBytes * tenantPart }],
      ),
  }
}
