// Files in a volume, mainly secrets. They are written through a container that is created for it and never started, so
// they are in no environment and no command, and no program of an image runs.
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { extract, pack } from 'tar-stream'
import { type ContainerSpec, type Labels, EngineError, containerBody, fromDocker, rejectForeign } from '../index.ts'
import { removeContainer } from './containers.ts'
import { segment, type EngineApi } from './engine-api.ts'
import { consumeStream } from './consume-stream.ts'
import type { VolumeMeter } from './volume-meter.ts'
import { createVolume, findVolume, removeVolume, requireVolume } from './volumes.ts'

/**
 * Directory of the volume in the helper. The archive is extracted to its parent, which also sets the volume's own mode
 * and owner.
 */
const parent = '/tenantry'
const directory = 'files'

/**
 * Replaces the content of a volume by files of mode 0400, in a directory of mode 0500, that belong to `user`. A volume
 * with other files is created again; `ENGINE_FAILED` if a container uses it.
 * @param user `uid` or `uid:gid`, as numbers
 * @throws EngineError; RangeError for an invalid user or file name
 */
export async function writeFiles(
  api: EngineApi,
  meter: VolumeMeter,
  volume: string,
  image: string,
  user: string,
  files: Readonly<Record<string, string>>,
  labels: Labels,
  signal: AbortSignal,
): Promise<void> {
  const archive = await archiveOf(files, ownerOf(user), 0o500)
  const found = await findVolume(api, volume, signal)
  if (found === undefined)
    throw new EngineError('VOLUME_MISSING', `Cannot write files: the volume "${volume}" does not exist.`)
  rejectForeign('volume', volume, found.Labels, labels)
  const spec = helperSpec(volume, image, labels)
  const isWritten = await withHelper(api, spec, signal, async (id) => {
    const others = (await namesIn(api, volume, id, signal)).filter((name) => !Object.hasOwn(files, name))
    if (others.length > 0) return false
    await put(api, volume, id, archive, signal)
    return true
  })
  if (isWritten) return
  // The Engine has no call that deletes a file.
  await removeVolume(api, volume, labels, signal)
  await createVolume(api, meter, { name: volume, labels: fromDocker(found.Labels) ?? labels }, signal)
  await withHelper(api, spec, signal, (id) => put(api, volume, id, archive, signal))
}

/**
 * Adds files to a volume. @param user owner, also of the volume's directory @throws EngineError; RangeError for an
 * invalid user or file name
 */
export async function addFiles(
  api: EngineApi,
  volume: string,
  image: string,
  user: string,
  files: Readonly<Record<string, string>>,
  labels: Labels,
  signal: AbortSignal,
): Promise<void> {
  const archive = await archiveOf(files, ownerOf(user), 0o700)
  await requireVolume(api, `write files to volume ${volume}`, volume, labels, signal)
  await withHelper(api, helperSpec(volume, image, labels), signal, (id) => put(api, volume, id, archive, signal))
}

interface Owner {
  uid: number
  gid: number
}

function ownerOf(user: string): Owner {
  const [, uid, gid = uid] = /^(\d+)(?::(\d+))?$/.exec(user) ?? []
  if (uid === undefined) throw new RangeError('Invalid user of files. Allowed: numbers, uid or uid:gid.')
  return { uid: Number(uid), gid: Number(gid) }
}

/** Packs files into a tar archive. @param mode of the volume's own directory */
async function archiveOf(files: Readonly<Record<string, string>>, owner: Owner, mode: number): Promise<Buffer> {
  const tar = pack()
  const content = buffer(tar)
  const mtime = new Date(0)
  tar.entry({ name: `${directory}/`, type: 'directory', mode, mtime, ...owner })
  for (const [name, text] of Object.entries(files)) {
    if (!/^[\w-][\w.-]*$/.test(name))
      throw new RangeError(
        'Invalid name of a file in a volume. Allowed: letters, digits, dots, underscores and dashes.',
      )
    tar.entry({ name: `${directory}/${name}`, mode: 0o400, mtime, ...owner }, text)
  }
  tar.finalize()
  return content
}

/**
 * Describes a helper without network and rights, although it never runs. Its labels identify one that an interrupted
 * call left.
 */
function helperSpec(volume: string, image: string, labels: Labels): ContainerSpec {
  return {
    name: `${volume}-files`,
    labels,
    image,
    command: ['never-started'],
    environment: {},
    user: '65534:65534',
    volumes: [{ volume, path: `${parent}/${directory}`, readOnly: false }],
    scratch: {},
    networks: [],
    published: [],
    health: { command: ['never-started'], intervalSeconds: 3600, timeoutSeconds: 1, retries: 1, startSeconds: 0 },
    resources: { memoryBytes: 16 * 1024 * 1024, cpuMillis: 100, pids: 1 },
    stopSeconds: 1,
  }
}

/** Runs work with a helper container. It first removes one that an interrupted call left. */
async function withHelper<T>(
  api: EngineApi,
  spec: ContainerSpec,
  signal: AbortSignal,
  work: (id: string) => Promise<T>,
): Promise<T> {
  await removeContainer(api, spec.name, spec.labels, signal)
  try {
    const id = await createHelper(api, spec, signal)
    // The Engine creates a volume that has disappeared since the check. Such a volume must not be written to.
    for (const { volume } of spec.volumes)
      await requireVolume(api, `write files to volume ${volume}`, volume, spec.labels, signal)
    return await work(id)
  } finally {
    await removeContainer(api, spec.name, spec.labels, signal)
  }
}

/**
 * Creates the helper with a writable root, because the Engine extracts no files into a read-only one. The volume keeps
 * its content.
 */
async function createHelper(api: EngineApi, spec: ContainerSpec, signal: AbortSignal): Promise<string> {
  const { HostConfig: host, ...body } = containerBody(spec)
  const Mounts = host?.Mounts?.map((mount) => ({ ...mount, VolumeOptions: { NoCopy: true } }))
  const call = {
    doing: `create container ${spec.name}`,
    method: 'POST',
    path: '/containers/create',
    query: { name: spec.name },
  } as const
  const made = await api.request(
    { ...call, body: { ...body, HostConfig: { ...host, ReadonlyRootfs: false, Mounts } } },
    signal,
  )
  return (made as { Id: string }).Id
}

async function put(api: EngineApi, volume: string, id: string, archive: Buffer, signal: AbortSignal): Promise<void> {
  const call = {
    doing: `write files to volume ${volume}`,
    method: 'PUT',
    path: `/containers/${segment(id)}/archive`,
  } as const
  await api.request({ ...call, query: { path: parent }, archive }, signal)
}

/** Returns the names of the files and directories at the top of a volume. */
async function namesIn(api: EngineApi, volume: string, id: string, signal: AbortSignal): Promise<string[]> {
  const doing = `read volume ${volume}`
  const query = { path: `${parent}/${directory}` }
  const response = await api.open({ doing, method: 'GET', path: `/containers/${segment(id)}/archive`, query }, signal)
  const names = new Set<string>()
  const archive = extract()
  archive.on('entry', ({ name: path }, entry, next) => {
    const [, name = ''] = path.split('/')
    if (name !== '') names.add(name)
    entry.once('end', next).resume()
  })
  await pipeline(consumeStream(doing, response, signal, { silentSeconds: 30 }), archive)
  return [...names]
}
