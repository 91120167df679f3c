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

/** Returns verifiers of a home's passwords with new salts. Postgres stores them and never receives the passwords. */
export function newVerifiers({ runtime, ddl, admin }: HomePasswords): HomeVerifiers {
  const verifier = (password: string) => scramVerifier(password, randomBytes(16))
  return { runtime: verifier(runtime), ddl: verifier(ddl), admin: verifier(admin) }
}

/** Creates a password that is not stored, for a login that is opened for one task. */
export function oneTimePassword(): { password: string; verifier: string } {
  const password = randomBytes(24).toString('base64url')
  return { password, verifier: scramVerifier(password, randomBytes(16)) }
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
