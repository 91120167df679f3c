// Runs a statement whose row is a response, as the caller. Postgres' errors are mapped to the interface's.
import type { FastifyRequest } from 'fastify'
import { sql, type Result, type Row, type Statement } from '../../database/statement.ts'
import type { Catalog } from '../registry/catalog.ts'
import type { Preferences } from '../request/read-preferences.ts'
import { restDatabaseError } from '../rest-database-errors.ts'
import type { RestResponse } from './response.ts'

const readOnly = sql("select set_config('transaction_read_only', 'on', true)")

export interface RunOptions {
  /** The served catalog, to whose names errors are mapped. */
  catalog: Catalog
  /** Whether Postgres rejects every change. */
  isReadOnly?: boolean
  /** Whether the statement may be repeated after a broken connection. */
  onlyReads?: boolean
  /** Whether all changes are undone after the response. */
  dryRun?: boolean
  /** A statement that runs after the first in the same transaction. */
  followUp?: Statement
}

/**
 * Runs the statement.
 * @throws RuntimeError for every error of Postgres
 */
export async function runStatement(
  request: FastifyRequest,
  statement: Statement,
  { catalog, isReadOnly = false, onlyReads = isReadOnly, dryRun = false, followUp }: RunOptions,
): Promise<{ response: RestResponse; followUp: Row | undefined }> {
  const {
    tenant: { database },
    rls,
  } = request
  const statements = [...(isReadOnly ? [readOnly] : []), statement, ...(followUp === undefined ? [] : [followUp])]
  let results: Result[]
  try {
    results = await (dryRun
      ? database.dryRun(rls, ...statements)
      : onlyReads
        ? database.read(rls, ...statements)
        : database.run(rls, ...statements))
  } catch (error) {
    throw restDatabaseError(error, rls, catalog.relations)
  }
  return {
    response: responseIn(results[isReadOnly ? 1 : 0]),
    followUp: followUp === undefined ? undefined : results.at(-1)?.rows[0],
  }
}

export function responseIn(result: Result | undefined): RestResponse {
  const row = result?.rows[0]
  const count = (name: string) => (typeof row?.[name] === 'number' ? row[name] : undefined)
  const { body, last } = row ?? {}
  return {
    body: typeof body === 'string' ? body : '',
    n: count('n') ?? 0,
    total: count('total'),
    changed: count('changed') ?? 0,
    made: count('made'),
    last: typeof last === 'string' ? last : undefined,
  }
}

/** Whether the request has `Prefer: tx=rollback`, where the installation allows it. */
export function isDryRun({ tx }: Preferences): boolean {
  return tx === 'rollback'
}
