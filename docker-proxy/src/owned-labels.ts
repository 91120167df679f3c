// The labels that something new must carry, and the name that goes with them. Pure.
import { type Labels, fromDocker } from '../../control-plane/src/engines/index.ts'
import type { ProxyRules } from './proxy-rules.ts'
import { Rejected } from './rejected.ts'

/** A tenant's, a scratch home's that a backup is restored into, a region's. */
const stackId = /^(?:[st]_[0-9a-f]{20}|region-[a-z][a-z0-9-]{0,47})$/
const serviceName = /^[a-z][a-z0-9-]{0,31}$/
const objectName = /^[A-Za-z0-9_.-]{1,200}$/

/** @throws Refused for labels that are not ours, and for a name that does not follow from them */
export function ownLabels(name: string, given: Readonly<Record<string, string>>, rules: ProxyRules): Labels {
  const labels = fromDocker(given)
  if (labels?.installation !== rules.installation) throw new Rejected("its labels are not this installation's")
  const { stack, service, spec } = labels
  if (!stackId.test(stack)) throw new Rejected('its label names no stack')
  if (service !== undefined && !serviceName.test(service)) throw new Rejected('its label names no service')
  if (spec !== undefined && !/^[0-9a-f]{8,64}$/.test(spec)) throw new Rejected('its label names no spec')
  if (!objectName.test(name) || !name.startsWith(`tenantry-${stack}-`))
    throw new Rejected('its name does not go with its stack')
  return labels
}
