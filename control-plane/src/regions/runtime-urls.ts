// Which of a region's shared runtimes serve a tenant. Pure.
import { runtimeOf } from '@tenantry/contract'
import type { RegionConfig } from './region-config.ts'

/**
 * Returns the URLs of the shared runtimes that serve a tenant. Where the operator's file lists the runtimes, that is one of
 * them. On a Docker Engine all of them serve each tenant, because a change replaces one after the other.
 */
export function sharedRuntimeUrls(
  { engine, runtime_urls: urls }: Pick<RegionConfig, 'engine' | 'runtime_urls'>,
  tenantId: string,
): readonly string[] {
  if (engine !== 'process' || urls.length === 1) return urls
  const number = runtimeOf(tenantId, urls.length)
  return urls.slice(number, number + 1)
}
