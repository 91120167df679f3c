// SCRAM-SHA-256 verifiers, so that no statement, and so no server log, contains a password.
import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import type { HomePasswords } from './home-server.ts'
import type { HomeVerifiers } from './home-sql.ts'

/**
 * Iterations. The passwords are random and cannot be guessed, so more would only slow down each login; RFC 7677's 4096
 * are for chosen passwords.
 */
const iterations = 64

/** Returns the form that Postgres stores in `pg_authid.rolpassword`. @param salt 16 random bytes */
export function scramVerifier(password: string, salt: Buffer): string {
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256')
  const storedKey = createHash('sha256').update(hmac(salted, 'Client Key')).digest('base64')
  const serverKey = hmac(salted, 'Server Key').toString('base64')
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${serverKey}`
}

/** Whether what Postgres stores is a verifier of this password that `scramVerifier` has made. */
export function isVerifierOf(verifier: string | null, password: string): boolean {
  const salt = /^SCRAM-SHA-256\$\d+:([A-Za-z0-9+/]{22}==)\$/.exec(verifier ?? '')?.[1]
  return salt !== undefined && verifier === scramVerifier(password, Buffer.from(salt, 'base64'))
}

/** Returns a verifier of a password, with a new salt. */
export const verifierOf = (password: string): string => scramVerifier(password, randomBytes(16))

/** Returns verifiers of a home's passwords with new salts. Postgres stores them and never receives the passwords. */
export function newVerifiers({ runtime, ddl, admin }: HomePasswords): HomeVerifiers {
  return { runtime: verifierOf(runtime), ddl: verifierOf(ddl), admin: verifierOf(admin) }
}

/** Creates a password that is not stored, for a login that is opened for one task. */
export function oneTimePassword(): { password: string; verifier: string } {
  const password = randomBytes(24).toString('base64url')
  return { password, verifier: verifierOf(password) }
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
