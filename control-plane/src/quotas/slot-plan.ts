// How many further slots for connections that stay a gateway is granted now. Pure.
import { decideLease, type LeaseDecision, type LeaseSituation } from './lease-plan.ts'

/**
 * As with requests: what waits is granted as long as there is a slot that nobody holds; what is asked ahead only from an
 * eighth of those. Nobody's are taken: who holds more than is open is asked to give it back, while others wait or the plan
 * allows fewer than are held. The sum of all slots never rises above the limit.
 * @param situation in slots; `reclaimable` are those without a connection, of others that were heard of lately
 */
export function decideSlots(situation: LeaseSituation): LeaseDecision {
  const decision = decideLease(situation)
  const { limit, own, others } = situation
  return own + others > limit ? { ...decision, recall: true } : decision
}
