// The operator's configuration of the proxy, with which every rule compares.
import type { Range } from '../../control-plane/src/stacks/index.ts'

export interface ProxyRules {
  /** Value of the label `tenantry.installation` of all objects that clients may use. */
  installation: string
  /** Containers without Tenantry's labels that may be attached to its networks: the gateway's and the control plane's. */
  attachedContainers: readonly string[]
  /** Repositories of the images that may run, for example `tenantry/postgres`. */
  images: readonly string[]
  /** Range of the networks that may be created. */
  networkRange: Range
  /** Host addresses `address:port` at which a region's gateway may be published. If empty, all networks are internal. */
  published: readonly string[]
  /** Whether this host is one of several of a region, whose networks are overlay networks of a swarm. */
  spansHosts: boolean
}
