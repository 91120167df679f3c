// The host call `db_query`: runs one statement with parameters in a transaction of the caller and returns its rows as JSON.
import { databaseError } from '../../database/database-error.ts'
import { RoundTripError } from '../../database/round-trip-error.ts'
import type { Value } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { callLimit } from '../executor/protocol.ts'
import { CallError } from './call-error.ts'
import { guardStatement } from './guarded-statement.ts'
import { textOf } from './read-parts.ts'

/** Maximum of the rows' bytes; the rest of a call's limit is for the JSON around them. */
const maxRowBytes = callLimit - 1_024
const maxParameters = 65_535

/** Classes of SQLSTATEs for failures of Postgres or of the connection, as opposed to errors in the statement. */
const outages = ['08', '40', '53', '55', '57']

interface QueryCall {
  tenant: Tenant
  context: RlsContext
  asCaller: boolean
  signal: AbortSignal
}

/** Runs a function's statement. @throws CallError, RuntimeError */
export async function queryDatabase(
  { tenant, context, asCaller, signal }: QueryCall,
  parts: readonly Buffer[],
): Promise<Buffer> {
  const [sql = '', parameters = ''] = parts.map((part) => textOf(part))
  const { text, returns } = guardStatement(sql, asCaller)
  try {
    const rows = await tenant.database.queryForeign(
      context,
      { text, values: readParameters(parameters), prepare: 'once' },
      maxRowBytes,
      signal,
    )
    return Buffer.from(
      returns === 'count'
        ? `{"rows":[],"count":${rows[0] ?? '0'}}`
        : `{"rows":[${rows.join(',')}],"count":${rows.length}}`,
    )
  } catch (error) {
    throw toCallError(error)
  }
}

function readParameters(text: string): Value[] {
  if (text === '') return []
  const parameters = parsed(text)
  if (!Array.isArray(parameters) || parameters.length > maxParameters)
    throw new CallError(
      'INVALID_PARAMETERS',
      `db_query: The parameters must be a JSON array of at most ${maxParameters} values.`,
    )
  return parameters.map((value: unknown) => {
    if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      return value
    return JSON.stringify(value)
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new CallError('INVALID_PARAMETERS', 'db_query: The parameters must be valid JSON.')
  }
}

/** Maps an error of Postgres. The function wrote the statement, so it receives Postgres' message about it. */
function toCallError(error: unknown): unknown {
  // Postgres reports a wrong number of parameters as an error of the protocol.
  if (error instanceof RoundTripError && error.sqlstate === '08P01')
    return new CallError('INVALID_PARAMETERS', `db_query: ${error.message}`, {
      cause: error,
      extra: { sqlstate: error.sqlstate },
    })
  const known = databaseError(error)
  if (
    !(error instanceof RoundTripError) ||
    error.sqlstate === undefined ||
    outages.includes(error.sqlstate.slice(0, 2))
  )
    return known
  const code = known instanceof RuntimeError && known.code !== 'INTERNAL' ? known.code : 'INVALID_QUERY'
  return new CallError(code, error.message, { cause: error, extra: { sqlstate: error.sqlstate } })
}
