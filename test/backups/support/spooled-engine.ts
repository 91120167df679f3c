// An engine whose Postgres containers are directories on disk: finished segments of the WAL wait in a spool, as on a tenant's
// volume, and survive the death of the control plane. A container is away while the file `away` exists.
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pack } from 'tar-stream'
import { segmentAt } from '#control-plane/backups/archive/wal.ts'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import type { Engine } from '#control-plane/engines/engine.ts'

const segmentBytes = 16n * 1024n * 1024n
const chunkBytes = 64 * 1024
const baseChunks = 320

/** Returns the name of a segment by its number. */
export const segmentNamed = (number: number): string => segmentAt(BigInt(number) * segmentBytes)

const positionIn = (number: number) => {
  const position = BigInt(number) * segmentBytes + 40n
  return `${(position >> 32n).toString(16)}/${(position & 0xffffffffn).toString(16)}`
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

/** Yields the content of a base backup, which is different for each. */
export function* baseContent(baseId: string): Generator<Buffer, undefined> {
  for (let number = 0; number < baseChunks; number++)
    yield Buffer.alloc(chunkBytes, createHash('sha512').update(`${baseId} ${number}`).digest())
}

/** The Postgres of a tenant, as the test drives it. */
export interface SpooledPostgres {
  /** Finishes the next segment. @returns its name */
  finish(content: Uint8Array): Promise<string>
  /** Ends the container and its sessions, or starts it. */
  setAway(isAway: boolean): Promise<void>
}

export async function createSpooledPostgres(root: string, tenantId: string): Promise<SpooledPostgres> {
  const home = join(root, tenantId)
  await mkdir(join(home, 'bases'), { recursive: true })
  await writeFile(join(home, 'finished'), '0')
  let finished = 0
  return {
    async finish(content) {
      const name = segmentNamed(finished + 1)
      if (await exists(join(home, 'on'))) {
        await writeFile(join(home, 'segment.new'), content)
        await rename(join(home, 'segment.new'), join(home, 'on', name))
      }
      finished++
      await writeFile(join(home, 'finished.new'), String(finished))
      await rename(join(home, 'finished.new'), join(home, 'finished'))
      return name
    },
    setAway: (isAway) => (isAway ? writeFile(join(home, 'away'), '') : rm(join(home, 'away'), { force: true })),
  }
}

/** Creates the engine. @param now the time that Postgres reports */
export function createSpooledEngine(root: string, now: () => Date): Engine {
  const checkPresent = async (home: string) => {
    if (await exists(join(home, 'away'))) throw new EngineError('ENGINE_FAILED', 'The container has ended.')
  }
  const finishedIn = async (home: string) => Number(await readFile(join(home, 'finished'), 'utf8'))
  const seconds = () => String(now().getTime() / 1000)

  async function* readSpool(home: string, archiveId: string, storedUntil: string) {
    const tar = pack()
    const owner = await readFile(join(home, 'archive'), 'utf8').catch(() => undefined)
    if (owner === archiveId) {
      const number = await finishedIn(home)
      tar.entry({ name: 'state' }, `${seconds()} ${positionIn(number + 1)} 7 8 00000001\n`)
      const names = (await readdir(join(home, 'on'))).sort()
      for (const name of names.filter((name) => name <= storedUntil)) await rm(join(home, 'on', name))
      for (const name of names.filter((name) => name > storedUntil).slice(0, 16))
        tar.entry({ name: `on/${name}.gz` }, await readFile(join(home, 'on', name)))
    }
    tar.finalize()
    for await (const chunk of tar as AsyncIterable<Uint8Array>) {
      await checkPresent(home)
      yield chunk
    }
  }

  async function* readBase(home: string, baseId: string) {
    const start = (await finishedIn(home)) + 1
    for (const chunk of baseContent(baseId)) {
      await checkPresent(home)
      yield chunk
    }
    const bounds = `(file ${segmentNamed(start)})\nSTOP WAL LOCATION: 0/0 (file ${segmentNamed((await finishedIn(home)) + 1)})\n`
    await writeFile(join(home, 'bases', baseId), `START WAL LOCATION: 0/0 ${bounds}`)
  }

  return {
    info: () => Promise.resolve({}),
    // The script and its parameters follow `bash -euo pipefail -c`.
    async exec(stack: string, _service: string, [, , , , script = '', , id = '']: readonly string[]) {
      const home = join(root, stack)
      await checkPresent(home)
      if (script.includes('show archive_mode')) {
        await rm(join(home, 'on'), { recursive: true, force: true })
        await writeFile(join(home, 'archive'), id)
        await mkdir(join(home, 'on'))
        return { code: 0, stdout: '', stderr: '' }
      }
      const bounds = await readFile(join(home, 'bases', id), 'utf8')
      return { code: 0, stdout: `${seconds()}\n${bounds}`, stderr: '' }
    },
    async *execStream(stack: string, _service: string, command: readonly string[]) {
      const [, , , , script = '', , id = '', storedUntil = ''] = command
      const home = join(root, stack)
      await checkPresent(home)
      yield* script.includes('pg_basebackup') ? readBase(home, id) : readSpool(home, id, storedUntil)
    },
  } as unknown as Engine
}
