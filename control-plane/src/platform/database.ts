// The client of the control database.
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { PrismaClient } from '../../../prisma/client/client.ts'
import type { Prisma } from '../../../prisma/client/client.ts'
import { SequentialPrismaPg } from './sequential-adapter.ts'
import { SuperuserPool, type PostgresUrl } from './superuser-url.ts'

/** The client of the control database. */
export type Database = PrismaClient
/** The client within a transaction. */
export type Transaction = Prisma.TransactionClient
export type { Prisma }

/** Opens the client of the control database, with at most 16 connections. It connects at the first query. */
export function openDatabase(url: PostgresUrl): Database {
  const pool = new SuperuserPool(url, {
    max: 16,
    connectionTimeoutMillis: 5_000,
    statement_timeout: 30_000,
    // Postgres ends the transaction of a lost host, whose locks would otherwise stay for hours.
    idle_in_transaction_session_timeout: 30_000,
    query_timeout: 40_000,
    // Nearly all pages are in memory: with the default, calls for some hundred of many tenants read whole tables.
    options: '-c random_page_cost=1.1',
    application_name: 'tenantry-control-plane',
  })
  const adapter = new SequentialPrismaPg(pool, { disposeExternalPool: true })
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

/** Returns whether the control database responds to a query. */
export function isReachable(database: Database): Promise<boolean> {
  return database.$queryRaw`select 1`.then(
    () => true,
    () => false,
  )
}
