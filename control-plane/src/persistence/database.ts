// The one client of the control database.
import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '../../../prisma/client/client.ts'
import type { Prisma } from '../../../prisma/client/client.ts'

export type Database = PrismaClient
export type Transaction = Prisma.TransactionClient
export type { Prisma }

export function openDatabase(url: string): Database {
  const adapter = new PrismaPg({ connectionString: url, max: 16, connectionTimeoutMillis: 5_000, statement_timeout: 30_000, application_name: 'tenantry-control-plane' })
  return new PrismaClient({ adapter })
}

/** Constraint that a failed write broke, or undefined when it failed for another reason. */
export function brokenConstraint(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'P2002') return undefined
  const text = JSON.stringify('meta' in error ? error.meta : {})
  return text
}
