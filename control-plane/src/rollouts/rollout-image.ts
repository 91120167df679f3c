// Checks that an image is of the component that a rollout changes. Pure.
import type { HostImage } from '../engines/index.ts'
import type { RolloutComponent } from './rollout.ts'

/** Maximum number of quoted characters of a name or a label's value. */
const maxQuotedLength = 100

/**
 * Checks an image. @param image name that the operator used @returns a public message; undefined if the image is valid
 */
export function componentError(
  component: RolloutComponent,
  image: string,
  { component: found }: HostImage,
): string | undefined {
  if (found === component) return undefined
  const is =
    found === undefined
      ? 'has no label org.tenantry.component'
      : `is of the component "${found.slice(0, maxQuotedLength)}"`
  return `The image "${image.slice(0, maxQuotedLength)}" ${is}. Allowed: images with the label org.tenantry.component=${component}.`
}
