// What is taken at most, whatever a tenant's plan and a bucket allow (specification, section 8).

export interface StorageLimits {
  /** Bytes of one file. */
  uploadBytes: number
  /** Bytes of UTF-8 of a path that is made; those that are there stay within reach. */
  pathBytes: number
  /** Validity of a signed URL when nobody says. */
  signedSeconds: number
  /** Validity of a signed URL at most. */
  longestSignedSeconds: number
}

export const defaultStorageLimits: StorageLimits = Object.freeze({
  uploadBytes: 100_000_000,
  pathBytes: 1_024,
  signedSeconds: 3_600,
  longestSignedSeconds: 365 * 86_400,
})
