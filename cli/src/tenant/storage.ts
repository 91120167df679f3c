// Commands that list, copy and remove the files of a tenant.
import { openAsBlob } from 'node:fs'
import { mkdir, readdir, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { usageError } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { contentTypeOf } from './content-type.ts'
import { downloadTo } from './download.ts'
import { asObject, asObjects, textOf } from './json.ts'
import { listObjects, objectPath, remotePath, type ObjectPath } from './objects.ts'
import type { TenantClient } from './tenant-client.ts'

/** Time limit of a transfer. */
const transferTimeoutMs = 30 * 60_000

/** A file that was copied. */
interface Copied {
  readonly from: string
  readonly to: string
  readonly bytes: number
}

/** Adds the group `storage`. */
export function addStorageCommands(program: Command, terminal: Terminal): void {
  const storage = program.command('storage').alias('files').description('list, copy and remove the files of a tenant')
  storage
    .command('ls [path]')
    .description('list buckets, or the content of BUCKET/FOLDER')
    .action(action(terminal, list))
  storage
    .command('cp <from> <to>')
    .description('copy a file to tenant:BUCKET/PATH, or from there')
    .option('-r, --recursive', 'copy all files of a directory or folder')
    .option('--content-type <type>', 'media type of an uploaded file; by default by its name')
    .action(action(terminal, copy))
  storage
    .command('rm <path>')
    .description('remove tenant:BUCKET/PATH')
    .option('-r, --recursive', 'remove all files of a folder')
    .action(action(terminal, remove))
}

async function list(call: Call, path?: string): Promise<void> {
  const client = await call.tenant()
  if (path === undefined) {
    const buckets = asObjects(await client.json('/storage/v1/bucket'), 'The list of buckets')
    call.output.rows(
      buckets,
      [
        { title: 'BUCKET', value: ({ name }) => textOf(name) },
        { title: 'POLICY', value: ({ policy }) => textOf(policy) },
        { title: 'FILES', value: ({ file_count: count }) => Number(count) },
        { title: 'BYTES', value: ({ total_size: size }) => Number(size) },
      ],
      'No buckets.',
    )
    return
  }
  const { bucket, path: folder } = objectPath(path)
  const found = await listObjects(client, bucket, folder === '' || folder.endsWith('/') ? folder : `${folder}/`, true)
  call.output.rows(
    found,
    [
      { title: 'NAME', value: ({ name }) => name },
      { title: 'BYTES', value: ({ bytes }) => bytes },
      { title: 'UPDATED', value: ({ updated_at: at }) => at },
    ],
    'No files.',
  )
}

async function copy(call: Call, from = '', to = ''): Promise<void> {
  const source = remotePath(from)
  const target = remotePath(to)
  if ((source === undefined) === (target === undefined))
    throw usageError('One of the two paths must be in the tenant, as tenant:BUCKET/PATH.')
  const client = await call.tenant()
  const copied =
    source === undefined
      ? await upload(call, client, from, target ?? objectPath(to))
      : await download(call, client, source, to)
  if (call.output.isJson) for (const one of copied) call.output.one(one)
  else
    call.output.progress(`Copied ${copied.length} files, ${copied.reduce((sum, { bytes }) => sum + bytes, 0)} bytes.`)
}

async function upload(call: Call, client: TenantClient, from: string, target: ObjectPath): Promise<Copied[]> {
  const source = call.path(from)
  const found = await stat(source).catch((cause: unknown) => {
    throw usageError(`The file ${from} cannot be read.`, { cause })
  })
  if (!found.isDirectory() && !found.isFile()) throw usageError(`${from} is neither a file nor a directory.`)
  if (found.isDirectory() && !call.isSet('recursive')) throw usageError(`${from} is a directory. Use --recursive.`)
  const files = found.isDirectory() ? await filesOf(call, source) : [source]
  const isFolder = found.isDirectory() || target.path === '' || target.path.endsWith('/')
  const copied: Copied[] = []
  for (const file of files) {
    const name = found.isDirectory() ? relative(source, file).split(sep).join('/') : basename(file)
    const path = isFolder ? joinPath(target.path, name) : target.path
    const type = call.text('contentType') ?? contentTypeOf(file)
    const body = await openAsBlob(file, { type })
    call.output.progressLine(`${copied.length + 1}/${files.length} ${name}, ${body.size} bytes`)
    await client.send(urlOf({ bucket: target.bucket, path }), {
      method: 'PUT',
      body,
      headers: { 'content-type': type },
      timeoutMs: transferTimeoutMs,
    })
    copied.push({ from: file, to: `tenant:${target.bucket}/${path}`, bytes: body.size })
  }
  call.output.progressLine(`${copied.length}/${files.length}`, true)
  return copied
}

async function download(call: Call, client: TenantClient, source: ObjectPath, to: string): Promise<Copied[]> {
  const target = call.path(to)
  const isDirectory = to.endsWith('/') || ((await stat(target).catch(() => undefined))?.isDirectory() ?? false)
  if (!call.isSet('recursive')) {
    const file = isDirectory ? join(target, basename(source.path)) : target
    return [await downloadOne(call, client, source, file)]
  }
  const folder = source.path === '' || source.path.endsWith('/') ? source.path : `${source.path}/`
  const copied: Copied[] = []
  for (const { name } of await listObjects(client, source.bucket, folder, false)) {
    const file = join(target, ...name.slice(folder.length).split('/'))
    // A name such as `../x` must not leave the directory.
    if (relative(target, file).split(sep)[0] === '..')
      throw usageError(`The name "${name.slice(0, 100)}" leaves ${to}.`)
    await mkdir(dirname(file), { recursive: true })
    copied.push(await downloadOne(call, client, { bucket: source.bucket, path: name }, file))
  }
  return copied
}

async function downloadOne(call: Call, client: TenantClient, source: ObjectPath, file: string): Promise<Copied> {
  const response = await client.send(urlOf(source), { timeoutMs: transferTimeoutMs })
  const total = response.headers.get('content-length')
  const bytes = await downloadTo(file, response, (received) =>
    call.output.progressLine(`${source.path}, ${received}${total === null ? '' : ` of ${total}`} bytes`),
  )
  call.output.progressLine(`${source.path}, ${bytes} bytes`, true)
  return { from: `tenant:${source.bucket}/${source.path}`, to: file, bytes }
}

async function remove(call: Call, path = ''): Promise<void> {
  const client = await call.tenant()
  const target = objectPath(path)
  if (call.isSet('recursive')) {
    const folder = target.path === '' || target.path.endsWith('/') ? target.path : `${target.path}/`
    const body =
      folder === ''
        ? await client.json(`/storage/v1/bucket/${encodeURIComponent(target.bucket)}/empty`, {
            method: 'POST',
            json: {},
          })
        : await client.json(`/storage/v1/object/${encodeURIComponent(target.bucket)}`, {
            method: 'DELETE',
            json: { prefix: folder },
          })
    call.output.one(asObject(body, 'The response'))
    return
  }
  if (target.path === '') throw usageError(`"${path.slice(0, 100)}" names no file. Use --recursive for a whole bucket.`)
  await client.send(urlOf(target), { method: 'DELETE' })
  call.output.one({ removed: `tenant:${target.bucket}/${target.path}` }, () => `Removed ${target.path}.`)
}

/** Returns the files of a directory. Progress names the symbolic links and devices, which are not copied. */
async function filesOf(call: Call, directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  for (const entry of entries)
    if (!entry.isFile() && !entry.isDirectory())
      call.output.progress(`Skipped ${join(entry.parentPath, entry.name)}: it is neither a file nor a directory.`)
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
}

function joinPath(folder: string, name: string): string {
  return folder === '' || folder.endsWith('/') ? folder + name : `${folder}/${name}`
}

function urlOf({ bucket, path }: ObjectPath): string {
  return `/storage/v1/object/${encodeURIComponent(bucket)}/${path.split('/').map(encodeURIComponent).join('/')}`
}
