// Sealing of secrets at rest: AES-256-GCM with the installation's master key, bound to what the secret belongs to.
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/** Encrypts what the control database keeps secret, under the installation's master key (AES-256-GCM). */
export interface Seal {
  /** Fingerprint of the master key, by which another one is told apart from damage. */
  masterKeyId: string
  /** `context` (for example tenant id and kind) must be the same when opening. */
  seal(text: string, context: string): Uint8Array<ArrayBuffer>
  /** @throws Error when the bytes or the context were changed */
  open(sealed: Uint8Array, context: string): string
}

/** Makes the seal of a master key of 32 bytes. */
export function createSeal(masterKey: Buffer): Seal {
  return {
    masterKeyId: createHmac('sha256', masterKey).update('master key id').digest('hex').slice(0, 16),

    seal(text, context) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv(algorithm, masterKey, nonce).setAAD(Buffer.from(context))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return new Uint8Array(Buffer.concat([nonce, cipher.getAuthTag(), body]))
    },
    open(sealed, context) {
      const bytes = Buffer.from(sealed)
      const decipher = createDecipheriv(algorithm, masterKey, bytes.subarray(0, nonceBytes))
      decipher.setAAD(Buffer.from(context))
      decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
      return Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()]).toString('utf8')
    },
  }
}
