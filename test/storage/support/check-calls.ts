// Runs the cases of client-cases.ts as one caller, and compares each outcome with the policies.
import type { Test } from 'tap'
import { cases } from './client-cases.ts'
import { actors, content, path, Rejected, rights, type At, type Case, type Policy } from './client-outcomes.ts'
import { storageOf, type Storage, type Tenancy } from './storage-clients.ts'

/** User IDs of the callers, in the order of `actors`. */
const callers = ['olga', 'peter', undefined, 'service'] as const

async function send(tenancy: Tenancy, target: string, type: string, body: string): Promise<void> {
  const headers = { authorization: `Bearer ${tenancy.token('olga')}`, 'content-type': type }
  const response = await fetch(`${tenancy.url}/storage/v1/${target}`, { method: 'POST', headers, body })
  if (!response.ok) throw new Error(await response.text())
}

/** Creates, as the owner, a bucket with a file in it, and empty ones. */
export async function fixture(tenancy: Tenancy, policy: Policy, bucket: string, ...empty: string[]): Promise<void> {
  for (const name of [bucket, ...empty])
    await send(tenancy, 'bucket', 'application/json', JSON.stringify({ name, policy }))
  await send(tenancy, `object/${bucket}/${path}`, 'text/plain', content)
}

/** @returns `yes`, `none`, `no`, or the status of the rejection; any other text is an error */
async function outcomeOf(one: Case, at: At, service: Storage): Promise<string> {
  try {
    await one.prepare?.(at, service)
    const outcome = await one.call(at)
    if (one.done !== undefined && (await one.done(at, service)) !== (outcome === 'yes'))
      return `${outcome}, but the state differs`
    return outcome
  } catch (error) {
    if (!(error instanceof Rejected)) return `failed: ${String(error)}`
    if (one.done !== undefined && (await one.done(at, service))) return `${error.outcome}, but it was done`
    return error.outcome
  }
}

export function expected({ right, instead }: Case, policy: Policy, actor: number, version: string): string {
  const outcome = rights[right][policy][actor] ?? ''
  return instead?.[version]?.[outcome] ?? outcome
}

/**
 * Runs all calls of one version and caller to buckets of one policy.
 * @param name prefix of the names of the buckets
 */
export async function checkCalls(
  t: Test,
  tenancy: Tenancy,
  version: string,
  policy: Policy,
  actor: number,
  name: string,
): Promise<void> {
  const service = storageOf(tenancy, 'service', version)
  const storage = storageOf(tenancy, callers[actor], version)
  const owner = storageOf(tenancy, 'olga', version)
  const location = (bucket: string): At => ({
    policy,
    bucket,
    elsewhere: `${name}-there`,
    storage,
    files: storage.from(bucket),
    owner: owner.from(bucket),
  })
  const shared = `${name}-shared`
  await fixture(tenancy, policy, shared, `${name}-there`)
  for (const [n, one] of cases.entries()) {
    const wanted = expected(one, policy, actor, version)
    // Calls that only read, or that are rejected and so change nothing, can share a bucket.
    const bucket = one.prepare === undefined && (one.done === undefined || wanted !== 'yes') ? shared : `${name}-${n}`
    if (bucket !== shared) await fixture(tenancy, policy, bucket)
    t.equal(
      await outcomeOf(one, location(bucket), service),
      wanted,
      `${one.name} by ${actors[actor] ?? ''}, ${policy} bucket, ${version}`,
    )
  }
}
