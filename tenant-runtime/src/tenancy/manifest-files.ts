// The stored manifests: each of the runtimes that share a directory writes a file of its own, and reads all of them when it
// starts, because its tenants may have been another runtime's before.
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissingFile, type RuntimeShare } from '@tenantry/contract'

/** Returns the path of a runtime's file. */
export function manifestFile(data: string, number: number): string {
  return join(data, number === 0 ? 'manifests.ndjson' : `manifests-${number}.ndjson`)
}

/** Returns the existing files of other runtimes. */
export async function otherManifestFiles(data: string, number: number): Promise<string[]> {
  return (await numbersIn(data)).filter((one) => one !== number).map((one) => manifestFile(data, one))
}

/**
 * Removes the files of runtimes that no longer exist. Runtime 0 does so once the control plane has sent all its tenants.
 */
export async function removeStaleManifests(data: string, { number, runtimes }: RuntimeShare): Promise<void> {
  if (number !== 0) return
  const stale = (await numbersIn(data)).filter((one) => one >= runtimes)
  await Promise.all(stale.map((one) => rm(manifestFile(data, one), { force: true })))
}

async function numbersIn(data: string): Promise<number[]> {
  const names = await readdir(data).catch((cause: unknown) => {
    if (isMissingFile(cause)) return []
    throw cause
  })
  return names.flatMap((name) => {
    const found = /^manifests(?:-([1-9]\d*))?\.ndjson$/.exec(name)
    return found === null ? [] : [Number(found[1] ?? 0)]
  })
}
