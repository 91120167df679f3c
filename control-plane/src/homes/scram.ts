// SCRAM-SHA-256 verifiers, so that a password never stands in a statement (and so in no server log).
import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import type { HomePasswords } from './home-server.ts'
import type { HomeVerifiers } from './home-sql.ts'

/** The passwords are random and longer than any guess; more rounds would only slow down each login (RFC 7677's 4096 are for words). */
const iterations = 64

/** The form Postgres stores in `pg_authid.rolpassword`. `salt` is 16 random bytes. */
export function scramVerifier(password: string, salt: Buffer): string {
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256')
  const storedKey = createHash('sha256').update(hmac(salted, 'Client Key')).digest('base64')
  const serverKey = hmac(salted, 'Server Key').toString('base64')
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${serverKey}`
}

/** SCRAM-SHA-256 verifiers of a home's passwords, with fresh salts: Postgres stores them, and never sees the passwords. */
export function newVerifiers({ runtime, ddl, admin }: HomePasswords): HomeVerifiers {
  const verifier = (password: string) => scramVerifier(password, randomBytes(16))
  return { runtime: verifier(runtime), ddl: verifier(ddl), admin: verifier(admin) }
}

/** A password that nobody keeps, for a login that is opened for one piece of work. */
export function oneTimePassword(): { password: string; verifier: string } {
  const password = randomBytes(24).toString('base64url')
  return { password, verifier: scramVerifier(password, randomBytes(16)) }
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
