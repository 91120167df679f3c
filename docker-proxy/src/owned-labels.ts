// The labels of a new object, and the name that they require. Pure.
import { type Labels, fromDocker } from '../../control-plane/src/engines/index.ts'
import type { ProxyRules } from './proxy-rules.ts'
import { Rejected } from './rejected.ts'

/** ID of a tenant's stack, of a scratch home into which a backup is restored, or of a region's. */
const stackId = /^(?:[st]_[0-9a-f]{20}|region-[a-z][a-z0-9-]{0,47})$/
/** Name of a service, which may contain the ID of its host. */
const serviceName = /^[a-z][a-z0-9-]{0,47}$/
const objectName = /^[A-Za-z0-9_.-]{1,200}$/

/** Reads the labels. @throws Rejected for foreign labels, and for a name that does not match them */
export function ownLabels(name: string, given: Readonly<Record<string, string>>, rules: ProxyRules): Labels {
  const labels = fromDocker(given)
  if (labels?.installation !== rules.installation) throw new Rejected('the labels do not belong to this installation')
  const { stack, service, spec } = labels
  if (!stackId.test(stack)) throw new Rejected('the label of the stack is not valid')
  if (service !== undefined && !serviceName.test(service)) throw new Rejected('the label of the service is not valid')
  if (spec !== undefined && !/^[0-9a-f]{8,64}$/.test(spec))
    throw new Rejected('the label of the specification is not valid')
  if (!objectName.test(name) || !name.startsWith(`tenantry-${stack}-`))
    throw new Rejected('the name does not match the label of the stack')
  return labels
}
