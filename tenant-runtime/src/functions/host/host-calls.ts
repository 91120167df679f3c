// Handles the calls of a running function to the runtime: SQL, files and HTTP, with the permissions of the function's caller.
import { RuntimeError } from '../../errors.ts'
import { tunnelOfTenant, type EgressProxySettings } from '../../egress/egress-proxy.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { callLimit } from '../executor/protocol.ts'
import type { CallHandler, HostResponse, HostCall } from '../executor/run-calls.ts'
import type { FunctionRecord } from '../function.ts'
import { CallError } from './call-error.ts'
import { queryDatabase } from './db-query.ts'
import type { FileStore } from './file-store.ts'
import { fetchForFunction, type FetchDeps } from './http-fetch.ts'
import { textOf } from './read-parts.ts'
import type { RunEgress } from './run-egress.ts'

export interface HostDeps extends Omit<FetchDeps, 'tunnel'> {
  /** The egress proxy through which functions reach other hosts; undefined to reach them directly. */
  egress?: EgressProxySettings | undefined
  files: FileStore
  /** Called after a function may have changed a tenant's data. */
  onWrite: (tenantId: string) => void
  onError: (error: Error) => void
}

/**
 * Creates the handler of the calls of one run.
 * @param caller the context in which the function was called
 * @param egress counts what the run sends
 */
export function createCallHandler(
  deps: HostDeps,
  tenant: Tenant,
  fn: FunctionRecord,
  caller: RlsContext,
  egress: RunEgress,
): CallHandler {
  const asCaller = fn.config.role === 'caller'
  const context: RlsContext = asCaller ? caller : { role: 'service', reason: `function ${fn.name}` }

  const tunnel = deps.egress && tunnelOfTenant(deps.egress, tenant.id)

  const handle = async ({ name, parts }: HostCall, signal: AbortSignal): Promise<Buffer> => {
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
        return fetchForFunction({ ...deps, tunnel }, fn.config.http_hosts, parts, egress, signal)
    }
  }

  return async (call, signal) => {
    try {
      const bytes = await handle(call, signal)
      if (call.name !== 'storage_get' && call.name !== 'http_fetch') deps.onWrite(tenant.id)
      return { ok: true, bytes }
    } catch (error) {
      return failure(error, (cause) => {
        if (!signal.aborted)
          deps.onError(new Error(`${tenant.id}: The call ${call.name} of the function ${fn.name} failed.`, { cause }))
      })
    }
  }
}

/** Returns a known error to the function; reports others to the log. */
function failure(error: unknown, report: (cause: unknown) => void): HostResponse {
  const isKnown = error instanceof CallError || (error instanceof RuntimeError && error.code !== 'INTERNAL')
  if (!isKnown) report(error)
  const { code, message } = isKnown ? error : { code: 'INTERNAL', message: 'The host call failed unexpectedly.' }
  return {
    ok: false,
    bytes: Buffer.from(JSON.stringify({ code, message, ...(error instanceof CallError ? error.extra : {}) })),
  }
}
