// What is taken at most of any tenant (specification, section 8). The size of a file is a limit of the tenant's manifest.

export interface StorageLimits {
  /** Bytes of UTF-8 of a path that is made; those that are there stay within reach. */
  pathBytes: number
  /** Validity of a signed URL when nobody says. */
  signedSeconds: number
  /** Validity of a signed URL at most. */
  maxSignedSeconds: number
}

export const defaultStorageLimits: StorageLimits = Object.freeze({
  pathBytes: 1_024,
  signedSeconds: 3_600,
  maxSignedSeconds: 365 * 86_400,
})
