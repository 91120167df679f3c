// A restore in place removes only blobs that the restored home does not list, even when the control plane is killed during it.
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { endOfNames, removeBlobs } from '#control-plane/backups/blob-scripts.ts'

interface Scene {
  /** The names of blobs that both the old and the new home list. */
  both: string[]
  /** The names of blobs that only the new home lists. */
  fresh: string[]
  /** Runs the script with `input` on standard input. @returns its exit code */
  remove(input: string): Promise<number>
  /** Returns the sorted names of the files in the store. */
  storedFiles(): Promise<string[]>
}

async function openScene(t: Test): Promise<Scene> {
  const root = await mkdtemp(join(tmpdir(), 'tenantry-blobs-'))
  t.teardown(() => rm(root, { recursive: true }))
  const [staging, store] = [join(root, 'staging'), join(root, 'store')]
  const makeBlob = async (directory: string, blob: string) => {
    await mkdir(join(directory, blob.slice(0, 2)), { recursive: true })
    await writeFile(join(directory, blob.slice(0, 2), blob), blob)
  }
  const names = (count: number) => Array.from({ length: count }, () => randomUUID()).sort()
  const [old, both, fresh] = [names(20), names(20), names(20)]
  // The store and the list of old blobs are those that the exchange of homes leaves.
  await mkdir(staging)
  for (const blob of [...old, ...both, ...fresh]) await makeBlob(store, blob)
  await writeFile(join(staging, 'before'), `${[...old, ...both].sort().join('\n')}\n`)
  return {
    both,
    fresh,
    remove: (input) =>
      new Promise((resolve) => {
        const child = execFile('bash', ['-euo', 'pipefail', '-c', removeBlobs, 'bash', staging, store], (error) =>
          resolve(error === null ? 0 : Number(error.code)),
        )
        child.stdin?.end(input)
      }),
    storedFiles: async () =>
      (await readdir(store, { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile())
        .map(({ name }) => name)
        .sort(),
  }
}

t.test('blobs that the new home lists stay, and all others are removed', async (t) => {
  const { both, fresh, remove, storedFiles } = await openScene(t)
  const wanted = [...both, ...fresh].sort()
  for (let n = 0; n < 2; n++) {
    t.equal(await remove([...wanted, endOfNames, ''].join('\n')), 0)
    t.same(await storedFiles(), wanted, 'a repeat changes nothing')
  }
})

t.test('a truncated list of names removes nothing', async (t) => {
  const { both, fresh, remove, storedFiles } = await openScene(t)
  const all = await storedFiles()
  const whole = [...[...both, ...fresh].sort(), endOfNames].join('\n')
  for (const length of [0, 1, 36, 37, 38, 500, whole.length - 40, whole.length - 4, whole.length - 1]) {
    t.not(await remove(whole.slice(0, length)), 0, `${length} bytes of ${whole.length}`)
    t.same(await storedFiles(), all)
  }
})
