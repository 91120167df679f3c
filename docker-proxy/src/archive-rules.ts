// Validates the archive that is written into a volume through a helper container: plain files of one directory, packed
// again, so that the Engine reads exactly what was validated here.
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { extract, pack } from 'tar-stream'
import { Rejected } from './rejected.ts'

/** Packs an archive again. @throws Rejected for links, devices, other paths, and an invalid archive */
export async function repackArchive(archive: Buffer): Promise<Buffer> {
  const input = extract()
  const output = pack()
  const packed = buffer(output)
  try {
    await Promise.all([
      pipeline(Readable.from([archive]), input),
      (async () => {
        for await (const entry of input) {
          const { name, type, mode, uid, gid } = entry.header
          const owned = { name, mode: mode & 0o777, uid, gid, mtime: new Date(0) }
          const content = await buffer(entry)
          if (type === 'directory' && name === 'files/') output.entry({ ...owned, type })
          else if (type === 'file' && /^files\/[\w-][\w.-]*$/.test(name)) output.entry({ ...owned, type }, content)
          else throw new Rejected('the archive contains other entries than files')
        }
      })(),
    ])
  } catch (cause) {
    output.destroy()
    await packed.catch(() => undefined)
    throw cause instanceof Rejected ? cause : new Rejected('the archive cannot be read', { cause })
  }
  output.finalize()
  return packed
}
