// One reading of a container's cgroup.
import type { ContainerStats } from '../index.ts'
import { segment, type EngineApi } from './engine-api.ts'

interface Reading {
  cpu_stats?: { cpu_usage?: { total_usage?: number } }
  memory_stats?: { usage?: number; stats?: { total_inactive_file?: number; inactive_file?: number } }
}

export async function stats(api: EngineApi, container: string, signal: AbortSignal): Promise<ContainerStats> {
  const query = { stream: false, 'one-shot': true }
  const call = {
    doing: `read the usage of ${container}`,
    method: 'GET',
    path: `/containers/${segment(container)}/stats`,
    query,
  } as const
  return readStats((await api.request(call, signal)) as Reading)
}

/**
 * Reads the usage, which is 0 for a container that is not running. Files that only the cache holds do not count; cgroup
 * v1 and v2 name them differently.
 */
export function readStats({ cpu_stats: cpu, memory_stats: memory }: Reading): ContainerStats {
  const cached = memory?.stats?.total_inactive_file ?? memory?.stats?.inactive_file ?? 0
  return { cpuNanoseconds: cpu?.cpu_usage?.total_usage ?? 0, memoryBytes: Math.max(0, (memory?.usage ?? 0) - cached) }
}
