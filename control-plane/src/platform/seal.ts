// Encrypts secrets at rest: AES-256-GCM with the installation's master key, bound to a context.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/** Encrypts secrets of the control database with the installation's master key (AES-256-GCM). */
export type Seal = ReturnType<typeof createSeal>

/**
 * Creates the seal of master keys of 32 bytes. The newest one encrypts; the former ones decrypt what they have encrypted
 * before. The tag of a value shows which key has encrypted it.
 */
export function createSeal(newest: Buffer, ...former: readonly Buffer[]) {
  const seal = (text: string, context: string): Uint8Array<ArrayBuffer> => {
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv(algorithm, newest, nonce).setAAD(Buffer.from(context))
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return new Uint8Array(Buffer.concat([nonce, cipher.getAuthTag(), body]))
  }

  /** Decrypts with the first of the keys that has encrypted the text. */
  const openWith = ([key, ...others]: readonly Buffer[], sealed: Uint8Array, context: string): string => {
    try {
      return openWithOne(key ?? newest, sealed, context)
    } catch (error) {
      if (others.length === 0) throw error
      return openWith(others, sealed, context)
    }
  }

  return {
    /** Fingerprint of the newest master key, which distinguishes another key from damaged data. */
    masterKeyId: fingerprint(newest),
    /** Fingerprints of all master keys, the newest first. */
    masterKeyIds: [newest, ...former].map(fingerprint),

    /** Derives another key of 32 bytes for this purpose from each master key, the newest first. */
    derivedKeys: (purpose: string): [Buffer, ...Buffer[]] => [
      derived(newest, purpose),
      ...former.map((key) => derived(key, purpose)),
    ],

    /** Encrypts a text. `context`, for example tenant ID and kind, must be the same for decryption. */
    seal,

    /** Decrypts a text. @throws Error if the bytes or the context were changed */
    open: (sealed: Uint8Array, context: string): string => openWith([newest, ...former], sealed, context),

    /**
     * Encrypts a value of a former key with the newest one. @returns undefined for a value of the newest key
     * @throws Error as `open`
     */
    renew(sealed: Uint8Array, context: string): Uint8Array<ArrayBuffer> | undefined {
      try {
        openWithOne(newest, sealed, context)
        return undefined
      } catch (error) {
        if (former.length === 0) throw error
        return seal(openWith(former, sealed, context), context)
      }
    },
  }
}

function openWithOne(key: Buffer, sealed: Uint8Array, context: string): string {
  const bytes = Buffer.from(sealed)
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes))
  decipher.setAAD(Buffer.from(context))
  decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
  return Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()]).toString('utf8')
}

function derived(key: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `tenantry ${purpose}`, 32))
}

function fingerprint(key: Buffer): string {
  return createHmac('sha256', key).update('master key id').digest('hex').slice(0, 16)
}
