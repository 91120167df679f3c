// Checks which routers of a cluster reach its primary.
import { type Engine, isUnreachable } from '../engines/index.ts'
import { clusterRouters, routerHealthPort } from '../stacks/index.ts'

const command = ['/usr/local/bin/is-ok', String(routerHealthPort), '/ready']

/** Returns the names of the routers that reach the primary. One that does not respond does not. @throws EngineError */
export async function readyRouters(
  engine: Pick<Engine, 'exec'>,
  tenantId: string,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const checks = clusterRouters.map(async (router) => {
    try {
      return (await engine.exec(tenantId, router, command, { signal })).code === 0
    } catch (cause) {
      signal.throwIfAborted()
      if (isUnreachable(cause)) throw cause
      return false
    }
  })
  const ready = await Promise.all(checks)
  return new Set(clusterRouters.filter((_, at) => ready[at]))
}
