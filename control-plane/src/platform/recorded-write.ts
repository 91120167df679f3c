// Writes of operators: one transaction each, with its entries in the audit log.
import { appendToChain, type AuditNote } from './audit-chain.ts'
import { reportCommit } from './change-log.ts'
import type { Database, Transaction } from './database.ts'

/** The author of a write in the audit log: a platform key's ID, or the name of a component of the installation. */
export interface Actor {
  keyId: string
}

/** A write in progress. Stores write through it, and all its changes are committed together or not at all. */
export interface RecordedWrite {
  readonly transaction: Transaction
  /** Adds an entry to the audit log. A write without an entry changes nothing. */
  readonly audit: (note: AuditNote) => void
}

/** Runs work in a transaction, which is rolled back if the work throws. */
export type RecordWrite = <T>(actor: Actor, work: (write: RecordedWrite) => Promise<T>) => Promise<T>

/** Creates recorded writes on the control database; `now` dates their entries in the audit log. */
export function createRecordWrite(database: Database, now: () => Date): RecordWrite {
  return async <T>(actor: Actor, work: (write: RecordedWrite) => Promise<T>) => {
    const result = await database.$transaction(
      async (transaction) => {
        const notes: AuditNote[] = []
        const made = await work({ transaction, audit: (note) => void notes.push(note) })
        await appendToChain(transaction, actor.keyId, notes, now)
        return made
      },
      { maxWait: 10_000, timeout: 20_000 },
    )
    reportCommit(database)
    return result
  }
}
