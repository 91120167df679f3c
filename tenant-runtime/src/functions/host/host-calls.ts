// What a function asks of the runtime while it runs, answered in its caller's name: database, files, the world outside.
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { callLimit } from '../executor/protocol.ts'
import type { ResponseCall, HostResponse, HostCall } from '../executor/run-calls.ts'
import type { FunctionRecord } from '../function.ts'
import { CallError } from './call-error.ts'
import { queryDatabase } from './db-query.ts'
import type { FileStore } from './file-store.ts'
import { fetchForFunction, type FetchDeps } from './http-fetch.ts'
import { textOf } from './read-parts.ts'

export interface HostDeps extends FetchDeps {
  files: FileStore
  /** A function may have changed something of a tenant's. */
  onWrite: (tenantId: string) => void
  onError: (error: Error) => void
}

/** Answers the calls of one run. `caller` is in whose name the function was called. */
export function respondToCalls(deps: HostDeps, tenant: Tenant, fn: FunctionRecord, caller: RlsContext): ResponseCall {
  const asCaller = fn.config.role === 'caller'
  const context: RlsContext = asCaller ? caller : { role: 'service', reason: `function ${fn.name}` }

  const response = async ({ name, parts }: HostCall, signal: AbortSignal): Promise<Buffer> => {
    switch (name) {
      case 'db_query':
        return queryDatabase({ tenant, context, asCaller, signal }, parts)
      case 'storage_get':
        return deps.files.get(tenant, context, textOf(parts[0]), callLimit)
      case 'storage_put':
        return Buffer.from(
          JSON.stringify(
            await deps.files.put(tenant, context, textOf(parts[0]), textOf(parts[1]), parts[2] ?? Buffer.alloc(0)),
          ),
        )
      case 'storage_delete':
        await deps.files.remove(tenant, context, textOf(parts[0]))
        return Buffer.alloc(0)
      case 'http_fetch':
        return fetchForFunction(deps, fn.config.http_hosts, parts, signal)
    }
  }

  return async (call, signal) => {
    try {
      const bytes = await response(call, signal)
      if (call.name !== 'storage_get' && call.name !== 'http_fetch') deps.onWrite(tenant.id)
      return { ok: true, bytes }
    } catch (error) {
      return failure(error, (cause) => {
        if (!signal.aborted)
          deps.onError(
            new Error(`${tenant.id}: the function ${fn.name} got no proper answer to ${call.name}`, { cause }),
          )
      })
    }
  }
}

/** Only what was meant for its eyes is told; the rest goes to the log. */
function failure(error: unknown, report: (cause: unknown) => void): HostResponse {
  const isKnown = error instanceof CallError || (error instanceof RuntimeError && error.code !== 'INTERNAL')
  if (!isKnown) report(error)
  const { code, message } = isKnown
    ? error
    : { code: 'INTERNAL', message: 'something went wrong in the host; its log knows what' }
  return {
    ok: false,
    bytes: Buffer.from(JSON.stringify({ code, message, ...(error instanceof CallError ? error.extra : {}) })),
  }
}
