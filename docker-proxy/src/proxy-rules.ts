// What the operator allows behind the door: values that every rule compares with.
import type { Range } from '../../control-plane/src/stacks/index.ts'

export interface ProxyRules {
  /** Value of the label `tenantry.installation` of everything that may be touched. */
  installation: string
  /** Containers that are not ours but may be put on our networks: the gateway's and the control plane's own. */
  attachedContainers: readonly string[]
  /** Repositories of the images that may run, e.g. `tenantry/postgres`. */
  images: readonly string[]
  /** Of the networks that may be made. */
  networkRange: Range
  /** `address:port` of the host that a region's gateway may be published at; none: no network has a way out. */
  published: readonly string[]
}
