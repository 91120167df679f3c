// The operator's own certificate, from files that are read again when they change.
import { Outage, pause } from '@tenantry/contract'
import { ServerCertificate, type CertificateSource, type Pem } from './server-certificate.ts'

interface FileCertificateOptions {
  /** The certificate and key at the start. */
  first: Pem
  /** Reads the files again; undefined if the certificate does not come from files. */
  read?: (() => Promise<Pem>) | undefined
  /** Milliseconds between two readings. */
  interval?: number | undefined
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  onReplaced: () => void
  onError: (error: Error) => void
}

const defaultInterval = 30_000

export class FileCertificate implements CertificateSource {
  readonly current = new ServerCertificate()
  readonly #options: FileCertificateOptions

  /** @throws Error if the certificate or its key is invalid */
  constructor(options: FileCertificateOptions) {
    this.#options = options
    this.current.replace(options.first)
  }

  /** A failure is reported once, and only if it lasts, because certificate and key are two files that change in turn. */
  async run(signal: AbortSignal): Promise<void> {
    const { read, interval = defaultInterval, elapsed, onReplaced, onError } = this.#options
    if (read === undefined) return
    const outage = new Outage()
    for (;;) {
      await pause(interval, signal)
      if (signal.aborted) return
      try {
        if (this.current.replace(await read())) onReplaced()
        outage.over()
      } catch (cause) {
        if (outage.failed(elapsed()))
          onError(
            new Error('The certificate of the SQL port cannot be read again. The previous one is used.', { cause }),
          )
      }
    }
  }
}
