// Whether the disk keeps what it is given. After an fsync that failed, the kernel may have dropped what it could not write
// and call the next fsync of the same file a success: such a file is never tried again, and nothing else is written before
// the disk has shown that it keeps something new.

export class DiskTrust {
  readonly #probe: () => Promise<void>
  #lost = false
  #probing: Promise<void> | undefined

  /** `probe` writes a new file, fsyncs it and reads it back. */
  constructor(probe: () => Promise<void>) {
    this.#probe = probe
  }

  /** Runs an fsync; one that fails, but for want of room, ends the trust. */
  async watch(sync: () => Promise<void>): Promise<void> {
    try {
      await sync()
    } catch (cause) {
      const full = cause instanceof Error && 'code' in cause && (cause.code === 'ENOSPC' || cause.code === 'EDQUOT')
      if (!full) this.#lost = true
      throw cause
    }
  }

  /** Returns at once as long as there is trust; else when a probe has given it back. @throws what the probe met */
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
