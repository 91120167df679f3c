// The client of the control database.
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { PrismaClient } from '../../../prisma/client/client.ts'
import type { Prisma } from '../../../prisma/client/client.ts'
import { SequentialPrismaPg } from './sequential-adapter.ts'

/** The client of the control database. */
export type Database = PrismaClient
/** The client within a transaction. */
export type Transaction = Prisma.TransactionClient
export type { Prisma }

/** Opens the client of the control database, with at most 16 connections. It connects at the first query. */
export function openDatabase(url: string): Database {
  const adapter = new SequentialPrismaPg({
    connectionString: url,
    max: 16,
    connectionTimeoutMillis: 5_000,
    statement_timeout: 30_000,
    application_name: 'tenantry-control-plane',
  })
  return new PrismaClient({ adapter })
}

const UniqueViolation = Type.Object({
  code: Type.Literal('P2002'),
  meta: Type.Object({
    driverAdapterError: Type.Object({ cause: Type.Object({ constraint: Type.Object({ index: Type.String() }) }) }),
  }),
})

/** Returns the name of the unique index that a failed write violated; undefined for another failure. */
export function brokenConstraint(error: unknown): string | undefined {
  return Value.Check(UniqueViolation, error) ? error.meta.driverAdapterError.cause.constraint.index : undefined
}
