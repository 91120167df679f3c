// Encrypts secrets at rest: AES-256-GCM with the installation's master key, bound to a context.
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/** Encrypts secrets of the control database with the installation's master key (AES-256-GCM). */
export interface Seal {
  /** Fingerprint of the master key, which distinguishes another key from damaged data. */
  masterKeyId: string
  /** Encrypts a text. `context`, for example tenant ID and kind, must be the same for decryption. */
  seal(text: string, context: string): Uint8Array<ArrayBuffer>
  /** Decrypts a text. @throws Error if the bytes or the context were changed */
  open(sealed: Uint8Array, context: string): string
}

/** Creates the seal of a master key of 32 bytes. */
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
