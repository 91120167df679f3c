// Which of several runtimes serves a tenant. Each tenant has exactly one, so that a crash affects only its tenants, and no
// request of a tenant reaches another runtime. Pure.
import { createHash } from 'node:crypto'

/**
 * Number of shards over which tenants are distributed. A shard belongs to one runtime, so files of shards have one writer,
 * whatever the number of runtimes was before. 120 is divisible by 1 to 6 and by 8, which makes the runtimes' shares equal.
 */
export const tenantShards = 120

/** Maximum number of runtimes that share the tenants. */
export const maxRuntimes = 8

/** The share of the tenants that one runtime serves. */
export interface RuntimeShare {
  /** Number of the runtime, from 0. */
  number: number
  /** Number of runtimes that share the tenants. */
  runtimes: number
}

/** Returns the shard of a tenant, which never changes: from 0 to `tenantShards` - 1. */
export function shardOf(tenantId: string): number {
  return createHash('sha256').update(tenantId).digest().readUInt32BE(0) % tenantShards
}

/** Returns the number of the runtime that serves a shard. */
export function runtimeOfShard(shard: number, runtimes: number): number {
  return shard % runtimes
}

/** Returns the number of the runtime that serves a tenant. */
export function runtimeOf(tenantId: string, runtimes: number): number {
  return runtimeOfShard(shardOf(tenantId), runtimes)
}

/** Whether a runtime with this share serves the tenant. */
export function isServed(tenantId: string, { number, runtimes }: RuntimeShare): boolean {
  return runtimes === 1 || runtimeOf(tenantId, runtimes) === number
}
