// Limits that apply to all tenants (specification, section 8). The maximum size of a file is in the tenant's manifest.

export interface StorageLimits {
  /** Longest path of a new object, in bytes of UTF-8. Existing objects with longer paths stay readable. */
  pathBytes: number
  /** Default validity of a signed URL. */
  signedSeconds: number
  /** Longest validity of a signed URL. */
  maxSignedSeconds: number
}

export const defaultStorageLimits: StorageLimits = Object.freeze({
  pathBytes: 1_024,
  signedSeconds: 3_600,
  maxSignedSeconds: 365 * 86_400,
})
