// Our labels as the Engine keeps them. What they say decides whether an object is ours, and what an image is.
import type Dockerode from 'dockerode'
import type { Labels, Ownership } from './container-host.ts'
import { EngineError } from './engine-error.ts'

type DockerLabels = Readonly<Record<string, string>> | null | undefined

/** Our labels under the names that the Docker Engine stores. */
export function toDocker({ installation, stack, service, spec }: Labels): Record<string, string> {
  return {
    'tenantry.installation': installation,
    'tenantry.stack': stack,
    ...(service === undefined ? {} : { 'tenantry.service': service }),
    ...(spec === undefined ? {} : { 'tenantry.spec': spec }),
  }
}

/** Undefined for what is not ours nor another installation's. */
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

/** Label of an image that says which component it is. Operators who build images of their own set it. */
export const componentLabel = 'org.tenantry.component'

type FoundVolume = Pick<Dockerode.VolumeInspectInfo, 'Driver' | 'Options'> & { Labels: DockerLabels }

/**
 * Whether a volume is as the Engine creates it by itself for a container that names a missing one. A volume that somebody
 * else has labelled, or that has another driver or options, never is.
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

/** Checks that an object is the owner's before it is touched. @throws EngineError `FOREIGN_OBJECT` */
export function rejectForeign(
  kind: 'container' | 'network' | 'volume',
  name: string,
  labels: DockerLabels,
  owner: Ownership,
): void {
  if (isOwned(labels, owner)) return
  throw new EngineError('FOREIGN_OBJECT', `a ${kind} named ${name} exists that is not Tenantry's`)
}

/** The Engine's filter for what is owned. */
export function ownedFilter({ installation, stack }: Ownership): { label: string[] } {
  return {
    label: [`tenantry.installation=${installation}`, ...(stack === undefined ? [] : [`tenantry.stack=${stack}`])],
  }
}
