// Tenantry's labels as the Engine stores them. They decide whether an object is Tenantry's, and which component an image is.
import type Dockerode from 'dockerode'
import type { Labels, Ownership } from './container-host.ts'
import { EngineError } from './engine-error.ts'

type DockerLabels = Readonly<Record<string, string>> | null | undefined

/** Returns labels under the names that the Docker Engine stores. */
export function toDocker({ installation, stack, service, spec }: Labels): Record<string, string> {
  return {
    'tenantry.installation': installation,
    'tenantry.stack': stack,
    ...(service === undefined ? {} : { 'tenantry.service': service }),
    ...(spec === undefined ? {} : { 'tenantry.spec': spec }),
  }
}

/** Returns the labels of an object; undefined if it belongs to no installation of Tenantry. */
export function fromDocker(labels: DockerLabels): Labels | undefined {
  const {
    'tenantry.installation': installation,
    'tenantry.stack': stack,
    'tenantry.service': service,
    'tenantry.spec': spec,
  } = { ...labels }
  if (installation === undefined || stack === undefined) return undefined
  return { installation, stack, ...(service === undefined ? {} : { service }), ...(spec === undefined ? {} : { spec }) }
}

/** Label of an image that names its component. Operators set it on images that they build themselves. */
export const componentLabel = 'org.tenantry.component'

type FoundVolume = Pick<Dockerode.VolumeInspectInfo, 'Driver' | 'Options'> & { Labels: DockerLabels }

/**
 * Whether a volume is one that the Engine itself created for a container that names a missing volume. A volume with any
 * label, another driver or options is not.
 */
export function isUnlabelled({ Driver: driver, Labels: labels, Options: options }: FoundVolume): boolean {
  return driver === 'local' && isEmptyObject(labels) && isEmptyObject(options)
}

function isEmptyObject(object: object | null | undefined): boolean {
  return Object.keys(object ?? {}).length === 0
}

/** Whether labels are those of an object of the owner. */
export function isOwned(labels: DockerLabels, owner: Ownership): boolean {
  const found = fromDocker(labels)
  return found?.installation === owner.installation && (owner.stack === undefined || found.stack === owner.stack)
}

/** Checks that an object belongs to the owner before it is touched. @throws EngineError `FOREIGN_OBJECT` */
export function rejectForeign(
  kind: 'container' | 'network' | 'volume',
  name: string,
  labels: DockerLabels,
  owner: Ownership,
): void {
  if (isOwned(labels, owner)) return
  throw new EngineError('FOREIGN_OBJECT', `A ${kind} named "${name}" exists that does not belong to Tenantry.`)
}

/** Returns the Engine's filter for the owner's objects. */
export function ownedFilter({ installation, stack }: Ownership): { label: string[] } {
  return {
    label: [`tenantry.installation=${installation}`, ...(stack === undefined ? [] : [`tenantry.stack=${stack}`])],
  }
}
