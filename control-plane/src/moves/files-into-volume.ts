// Copies files into the volume of a tenant's own runtime, with one program in its container.
import { pack } from 'tar-stream'
import { linesOf } from '@tenantry/contract'
import { inFiles, packFiles, type FilesLocation, type RuntimeFiles } from '../backups/index.ts'
import type { FilesToCopy, FileTransfer } from './copy-files.ts'
import { MoveError } from './move-error.ts'

/** Bytes of a line of `sha256sum`, and more. */
const maxLineBytes = 4_096

/** Extracts an archive, and writes the hashes of its files once they survive a power failure. `$1` is the tenant's ID. */
const extraction = `
umask 077
store="$TENANTRY_DATA/blobs/$1"
mkdir -p "$store"
names=$(mktemp)
trap 'rm -f "$names"' EXIT
tar --extract --verbose --directory "$store" --no-same-owner --no-same-permissions --touch > "$names"
sync --file-system "$store"
cd "$store"
xargs -r -d '\\n' sha256sum < "$names"
`

/** Returns the way from shared runtimes into the empty volume of a tenant's own one. */
export function filesIntoVolume(runtime: RuntimeFiles, target: FilesLocation, tenantId: string): FileTransfer {
  return {
    storeId: (signal) => runtime.storeId(signal),
    add: (copied, signal) => extract(copied, runtime, target, tenantId, signal),
  }
}

async function extract(
  { files, storeId, pace }: FilesToCopy,
  runtime: RuntimeFiles,
  target: FilesLocation,
  tenantId: string,
  signal: AbortSignal,
): Promise<void> {
  const failed = new AbortController()
  const either = AbortSignal.any([signal, failed.signal])
  const wanted = new Map<string, string>()
  const archive = pack()
  // The first of several errors counts: each of the two parts fails when the other one does.
  const fail = (cause: unknown) => {
    if (!failed.signal.aborted) failed.abort(cause)
    archive.destroy()
  }
  archive.on('error', fail)
  const onFile = ({ id, sha256 }: { id: string; sha256: string }) => void wanted.set(id, sha256)
  const packing = packFiles(archive, files, { runtime, storeId, pace, onFile }, either)
  const command = ['bash', '-euo', 'pipefail', '-c', extraction, 'bash', tenantId]
  const input = archive as unknown as AsyncIterable<Uint8Array>
  const output = inFiles(target)(command, { input, signal: either })
  await Promise.all([
    packing.then(() => archive.finalize()).catch(fail),
    compare(linesOf(output, maxLineBytes), wanted, files.length).catch(fail),
  ])
  failed.signal.throwIfAborted()
}

/** Compares the hashes of the files that were extracted. @throws MoveError */
async function compare(
  lines: AsyncIterable<string>,
  wanted: ReadonlyMap<string, string>,
  count: number,
): Promise<void> {
  let equal = 0
  for await (const line of lines) {
    const [sha256 = '', path = ''] = line.split('  ')
    const id = path.split('/').at(-1) ?? ''
    if (id === 'store') continue
    if (wanted.get(id) !== sha256) throw new MoveError(`The content of the file ${id} differs in the copy.`)
    equal++
  }
  if (equal !== count) throw new MoveError(`Of ${count} files, ${equal} were copied.`)
}
