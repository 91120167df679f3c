// The names of containers on a network. Pure.
import type { OtherContainer } from '../stacks/index.ts'

/** Returns the name of a container among the members of a network. On several hosts, two containers may have one name. */
export function memberName({ container, host }: OtherContainer): string {
  return host === undefined ? container : `${host}/${container}`
}
