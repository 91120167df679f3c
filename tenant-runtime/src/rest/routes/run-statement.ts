// Runs a statement whose row is a response, as the caller. Postgres' errors are mapped to the interface's.
import type { FastifyRequest } from 'fastify'
import { sql, type Result, type Row, type Statement } from '../../database/statement.ts'
import { restDatabaseError } from '../rest-database-errors.ts'
import { planStatement, planText } from '../sql/plan-sql.ts'
import { keepResponseSettings, readResponse, settingsOf } from './request-settings.ts'
import type { RestResponse } from './response.ts'
import type { RestRequest } from './rest-request.ts'
import { endPhase } from './server-timing.ts'

/** Makes the transaction read-only. */
export const readOnly = sql("select set_config('transaction_read_only', 'on', true)")

export interface RunOptions {
  /** Whether Postgres rejects every change. */
  isReadOnly?: boolean
  /** Whether the statement may be repeated after a broken connection. */
  onlyReads?: boolean
  /** A statement that runs after the first in the same transaction. */
  followUp?: Statement
}

/**
 * Runs the statement of a request, or only plans it. With `Prefer: tx=rollback`, where the installation allows it, all its
 * changes are undone.
 * @throws RuntimeError for every error of Postgres
 */
export async function runStatement(
  request: FastifyRequest,
  rest: Pick<RestRequest, 'catalog' | 'preferences' | 'explain'>,
  statement: Statement,
  { isReadOnly = false, onlyReads = isReadOnly, followUp }: RunOptions = {},
): Promise<{ response: RestResponse; followUp: Row | undefined }> {
  const {
    tenant: { database },
    rls,
  } = request
  const { catalog, preferences, explain } = rest
  endPhase(request, 'plan')
  // The tenant's own function may attempt changes.
  const rejectsChanges = isReadOnly || (onlyReads && catalog.settings.db_pre_request !== null)
  const before = [...(rejectsChanges ? [readOnly] : []), ...settingsOf(request, rest)]
  const after = [...(followUp === undefined ? [] : [followUp]), ...(catalog.mentions.response ? [readResponse] : [])]
  const statements = [...before, explain === undefined ? statement : planStatement(statement, explain), ...after]
  let results: Result[]
  try {
    results = await (preferences.tx === 'rollback' && !onlyReads
      ? database.dryRun(rls, ...statements)
      : onlyReads
        ? database.readAnywhere(rls, ...statements)
        : database.run(rls, ...statements))
  } catch (error) {
    throw restDatabaseError(error, rls, catalog.relations, request.basePath)
  }
  endPhase(request, 'transaction')
  const result = results[before.length]
  if (explain !== undefined)
    return { response: { ...responseIn(undefined), body: planText(result?.rows ?? []) }, followUp: undefined }
  if (catalog.mentions.response) keepResponseSettings(request, results.at(-1)?.rows[0])
  return {
    response: responseIn(result),
    followUp: followUp === undefined ? undefined : results[before.length + 1]?.rows[0],
  }
}

/**
 * Calls the tenant's function for a request that needs no statement of its own. Without such a function, nothing runs.
 * @throws RuntimeError for every error of Postgres
 */
export async function runWithoutStatement(
  request: FastifyRequest,
  rest: Pick<RestRequest, 'catalog' | 'preferences'>,
  options: RunOptions = {},
): Promise<void> {
  if (rest.catalog.settings.db_pre_request === null) return
  await runStatement(request, { ...rest, explain: undefined }, sql("select '' as body"), options)
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
