// Tracks whether the disk stores what is written. After a failed fsync, the kernel may drop the data that it could not write
// and report success for the next fsync of the same file. Such a file is never retried, and nothing else is written until a
// probe has shown that the disk stores new data.

export class DiskTrust {
  readonly #probe: () => Promise<void>
  #lost = false
  #probing: Promise<void> | undefined

  /** @param probe writes a new file, syncs it and reads it back */
  constructor(probe: () => Promise<void>) {
    this.#probe = probe
  }

  /** Runs an fsync. A failure other than a full disk ends the trust. */
  async watch(sync: () => Promise<void>): Promise<void> {
    try {
      await sync()
    } catch (cause) {
      const full = cause instanceof Error && 'code' in cause && (cause.code === 'ENOSPC' || cause.code === 'EDQUOT')
      if (!full) this.#lost = true
      throw cause
    }
  }

  /** Returns at once if the disk is trusted, else after a successful probe. @throws the probe's error */
  async assure(): Promise<void> {
    if (!this.#lost) return
    this.#probing ??= this.#probe()
      .then(() => {
        this.#lost = false
      })
      .finally(() => {
        this.#probing = undefined
      })
    await this.#probing
  }
}
