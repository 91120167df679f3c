// Whether an image is of the component that a rollout changes. Pure.
import type { HostImage } from '../engines/index.ts'
import type { RolloutComponent } from './rollout.ts'

/** Characters of a name or a label's value that are quoted. */
const maxQuoted = 100

/** @param image as the operator named it @returns what is wrong, in words that may be shown; undefined when nothing is */
export function componentError(
  component: RolloutComponent,
  image: string,
  { component: found }: HostImage,
): string | undefined {
  if (found === component) return undefined
  const is =
    found === undefined ? 'has no label org.tenantry.component' : `is of the component "${found.slice(0, maxQuoted)}"`
  return `The image "${image.slice(0, maxQuoted)}" ${is}. Allowed: images with the label org.tenantry.component=${component}.`
}
