// The host of a part of a stack, as an optional field. Pure.

/** Returns the field `host` of an object that has one; no field otherwise. */
export function onHost({ host }: { host?: string | undefined }): { host?: string } {
  return host === undefined ? {} : { host }
}
