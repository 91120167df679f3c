// Recognises the errors of connections to Postgres that have ended, or that could not be opened.
import pg from 'pg'

/** SQLSTATEs with which Postgres ends sessions, or rejects them during a start. Class 08 has those of connections. */
const endings = /^(08...|57P0[123])$/
/** Errors of pg without a code. */
const texts = /^(Connection terminated|Client has encountered a connection error|timeout expired|Query read timeout)/

/** Whether an error is that of a lost connection. The same work may succeed in a new one. */
export function isLostConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (error instanceof pg.DatabaseError) return endings.test(code)
  return /^(ECONN\w+|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)$/.test(code) || texts.test(error.message)
}
