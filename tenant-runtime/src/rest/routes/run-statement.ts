// Runs a statement whose row is an answer, as the caller; what Postgres refuses is said in the interface's words.
import type { FastifyRequest } from 'fastify'
import { sql, type Result, type Row, type Statement } from '../../database/statement.ts'
import type { Catalog } from '../registry/catalog.ts'
import type { Preferences } from '../request/read-preferences.ts'
import { restDatabaseError } from '../rest-database-errors.ts'
import type { RestResponse } from './response.ts'

const readOnly = sql("select set_config('transaction_read_only', 'on', true)")

export interface RunOptions {
  /** What is served, to tell in its words what Postgres refuses. */
  catalog: Catalog
  /** Postgres refuses every change. */
  reading?: boolean
  /** Once more does no harm, should the connection break. */
  onlyReads?: boolean
  /** All of it is undone after the answer. */
  dryRun?: boolean
  /** Runs behind the statement, in the same transaction. */
  also?: Statement
}

/** @throws RuntimeError */
export async function runStatement(
  request: FastifyRequest,
  statement: Statement,
  { catalog, reading = false, onlyReads = reading, dryRun = false, also }: RunOptions,
): Promise<{ response: RestResponse; also: Row | undefined }> {
  const {
    tenant: { database },
    rls,
  } = request
  const statements = [...(reading ? [readOnly] : []), statement, ...(also === undefined ? [] : [also])]
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
    response: responseIn(results[reading ? 1 : 0]),
    also: also === undefined ? undefined : results.at(-1)?.rows[0],
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

/** `Prefer: tx=rollback`, where the installation allows it. */
export function isDryRun({ tx }: Preferences): boolean {
  return tx === 'rollback'
}
