// A certificate of the installation's own authority. The control plane issues it, and the gateway renews it each hour. It
// is stored on disk, so that a gateway that restarts without a control plane still serves TLS.
import { generateKeyPair } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import {
  CertificateResponse,
  internalPaths,
  isMissingFile,
  Outage,
  pause,
  replaceFile,
  syncDirectory,
} from '@tenantry/contract'
import { postToControl, readResponse, type ControlPlane } from '../control-call.ts'
import { ServerCertificate, type CertificateSource } from './server-certificate.ts'

interface IssuedCertificateOptions {
  control: ControlPlane
  /** The domain that the gateway serves. */
  domain: string
  /** Path of the file with certificate and key, which has mode 0600. */
  file: string
  /** Milliseconds between two renewals. */
  interval?: number | undefined
  /** Returns milliseconds since 1970. */
  now: () => number
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  onError: (error: Error) => void
}

const defaultInterval = 3_600_000
const minDelay = 100
const maxDelay = 60_000
const timeoutMs = 10_000
/** While a certificate is valid for longer than this, failures to renew it are not reported. */
const longValidity = 30 * 24 * 3_600_000

const newKeyPair = promisify(generateKeyPair)

export class IssuedCertificate implements CertificateSource {
  readonly current = new ServerCertificate()
  readonly #options: IssuedCertificateOptions

  constructor(options: IssuedCertificateOptions) {
    this.#options = options
  }

  /** Reads the certificate of an earlier run. A file that is missing or damaged is like none: `run` requests another one. */
  async load(): Promise<void> {
    const { file, onError } = this.#options
    try {
      const text = await readFile(file, 'utf8')
      // Each of the two parsers finds its own blocks in the text.
      this.current.replace({ cert: text, key: text })
    } catch (cause) {
      if (!isMissingFile(cause)) onError(new Error(`The certificate in ${file} cannot be read.`, { cause }))
    }
  }

  /** Renews the certificate now and then each hour. After a failure, it tries again after 100 ms to a minute. */
  async run(signal: AbortSignal): Promise<void> {
    const { interval = defaultInterval, elapsed, onError } = this.#options
    const isStopped = () => signal.aborted
    const outage = new Outage()
    let delay = minDelay
    while (!isStopped()) {
      let wait = interval
      try {
        await this.#renew(signal)
        outage.over()
        delay = minDelay
      } catch (cause) {
        if (isStopped()) return
        wait = delay
        delay = Math.min(delay * 2, maxDelay)
        if (this.#isUrgent() && outage.failed(elapsed()))
          onError(new Error('The control plane does not issue a certificate for the SQL port.', { cause }))
      }
      await pause(wait, signal)
    }
  }

  #isUrgent(): boolean {
    const { expiresAt } = this.current
    return expiresAt === undefined || expiresAt - this.#options.now() < longValidity
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const { control, domain, file } = this.#options
    const { publicKey, privateKey } = await newKeyPair('ec', { namedCurve: 'P-256' })
    const body = { public_key: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'), domain }
    const response = await postToControl(control, internalPaths.sqlCertificate, { timeoutMs, signal, body })
    const { certificate } = await readResponse(CertificateResponse, response)
    const pem = { cert: certificate, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) }
    this.current.replace(pem)
    // One file, so that certificate and key belong together after a crash.
    await replaceFile(file, `${pem.key}${pem.cert}`)
    await syncDirectory(dirname(file))
  }
}
