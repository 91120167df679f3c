// What a restore in place removes from the store of blobs, on real directories: what is wanted stays, whenever the control plane is killed.
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { endOfNames, removeBlobs } from '#control-plane/backups/blob-scripts.ts'

interface Scene {
  /** Of both homes, and of the new one alone. */
  both: string[]
  fresh: string[]
  /** @returns what the program ends with */
  remove(input: string): Promise<number>
  /** Names of the files that lie in the store. */
  there(): Promise<string[]>
}

async function openScene(t: Test): Promise<Scene> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-blobs-'))
  t.teardown(() => rm(directory, { recursive: true }))
  const [staging, store] = [join(directory, 'staging'), join(directory, 'store')]
  const make = async (where: string, blob: string) => {
    await mkdir(join(where, blob.slice(0, 2)), { recursive: true })
    await writeFile(join(where, blob.slice(0, 2), blob), blob)
  }
  const names = (count: number) => Array.from({ length: count }, () => randomUUID()).sort()
  const [old, both, fresh] = [names(20), names(20), names(20)]
  // As the exchange leaves it.
  await mkdir(staging)
  for (const blob of [...old, ...both, ...fresh]) await make(store, blob)
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
    there: async () =>
      (await readdir(store, { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile())
        .map(({ name }) => name)
        .sort(),
  }
}

t.test('what the new home wants lies there, and what only the old one had goes', async (t) => {
  const { both, fresh, remove, there } = await openScene(t)
  const wanted = [...both, ...fresh].sort()
  for (let n = 0; n < 2; n++) {
    t.equal(await remove([...wanted, endOfNames, ''].join('\n')), 0)
    t.same(await there(), wanted, 'once and again')
  }
})

t.test('names that break off, at any place, remove nothing', async (t) => {
  const { both, fresh, remove, there } = await openScene(t)
  const all = await there()
  const whole = [...[...both, ...fresh].sort(), endOfNames].join('\n')
  for (const length of [0, 1, 36, 37, 38, 500, whole.length - 40, whole.length - 4, whole.length - 1]) {
    t.not(await remove(whole.slice(0, length)), 0, `${length} bytes of ${whole.length}`)
    t.same(await there(), all)
  }
})
