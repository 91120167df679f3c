// Decides how many further slots for long-lived connections a gateway is granted now. Pure.
import { decideLease, type LeaseDecision, type LeaseSituation } from './lease-plan.ts'

/**
 * Decides slots like requests: waiting connections get free slots, and further ones only an eighth of those. No slot is
 * taken away: the control plane recalls unused slots while others wait or the plan allows fewer than are held. The
 * sum of all slots never rises above the limit.
 * @param situation in slots; `reclaimable` are those without a connection, of other gateways that called recently
 */
export function decideSlots(situation: LeaseSituation): LeaseDecision {
  const decision = decideLease(situation)
  const { limit, own, others } = situation
  return own + others > limit ? { ...decision, recall: true } : decision
}
