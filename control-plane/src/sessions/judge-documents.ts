// Decides whether a tenant may use SQL, by the size of its documents. Pure.
import type { Condition } from '../tenants/index.ts'

/** A tenant whose documents are measured. */
export interface MeasuredTenant {
  id: string
  /** Name of the shared database. */
  database: string
  /** Bytes of documents that the plan allows; undefined if unlimited. */
  limitBytes: number | undefined
  /** Whether its SQL login is closed because of its documents. */
  isFull: boolean
}

/** Shares of the quota above which the login is closed, and above which a closed one stays closed. */
const closedAbove = 1.2
const stillClosedAbove = 1.1

/** Reason code of the condition `Sql` of a tenant with too many documents. */
export const documentsReason = 'DocumentsExceeded'

/** Whether the SQL login of a tenant is closed with documents of that size. */
export function isOverDocuments({ limitBytes, isFull }: MeasuredTenant, bytes: number): boolean {
  return limitBytes !== undefined && bytes > limitBytes * (isFull ? stillClosedAbove : closedAbove)
}

/** Returns the condition of a tenant with too many documents. */
export function documentsCondition(bytes: number, limitBytes: number, at: Date): Condition {
  const megabytes = (value: number) => (value / 1e6).toFixed(0)
  return {
    type: 'Sql',
    status: 'False',
    reason: documentsReason,
    message:
      `The documents take ${megabytes(bytes)} MB of disk; the plan allows ${megabytes(limitBytes)} MB.` +
      ` The SQL login is closed until they take less than ${megabytes(limitBytes * stillClosedAbove)} MB.`,
    observed_at: at.toISOString(),
  }
}
