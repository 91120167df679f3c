// The archive that is written into a volume through a container for files: plain files of one directory, packed anew, so
// that the Engine reads in it what was read here.
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { extract, pack } from 'tar-stream'
import { Rejected } from './rejected.ts'

/** @throws Refused for links, devices, other places, and what is no archive */
export async function remadeArchive(archive: Buffer): Promise<Buffer> {
  const given = extract()
  const made = pack()
  const written = buffer(made)
  try {
    await Promise.all([
      pipeline(Readable.from([archive]), given),
      (async () => {
        for await (const entry of given) {
          const { name, type, mode, uid, gid } = entry.header
          const owned = { name, mode: mode & 0o777, uid, gid, mtime: new Date(0) }
          const content = await buffer(entry)
          if (type === 'directory' && name === 'files/') made.entry({ ...owned, type })
          else if (type === 'file' && /^files\/[\w-][\w.-]*$/.test(name)) made.entry({ ...owned, type }, content)
          else throw new Rejected('the archive holds something else than files')
        }
      })(),
    ])
  } catch (cause) {
    made.destroy()
    await written.catch(() => undefined)
    throw cause instanceof Rejected ? cause : new Rejected('the archive cannot be read', { cause })
  }
  made.finalize()
  return written
}
