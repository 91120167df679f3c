// Files in a volume, secrets above all: written through a container that is made for it and never started. So they are in
// no environment and no command, and nothing of an image runs.
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { extract, pack } from 'tar-stream'
import { type ContainerSpec, type Labels, EngineError, containerBody, fromDocker, rejectForeign } from '../index.ts'
import { removeContainer } from './containers.ts'
import { segment, type EngineApi } from './engine-api.ts'
import { consumeStream } from './consume-stream.ts'
import { createVolume, findVolume, removeVolume, requireVolume, type VolumeMeter } from './volumes.ts'

/** Where the helper sees the volume. Files are put below its parent, so that the volume's own mode and owner are set, too. */
const parent = '/tenantry'
const directory = 'files'

/**
 * Replaces the content of a volume by files of mode 0400, in a directory of mode 0500, that belong to `user`.
 * A volume that holds other files as well is made anew, which a container that uses it prevents: `ENGINE_FAILED`.
 * @param user `uid` or `uid:gid`, as numbers
 * @throws EngineError; RangeError for a user or a file name that is none
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
  if (found === undefined) throw new EngineError('VOLUME_MISSING', `cannot write files: volume ${volume} is not there`)
  rejectForeign('volume', volume, found.Labels, labels)
  const spec = helperSpec(volume, image, labels)
  const written = await withHelper(api, spec, signal, async (id) => {
    const others = (await namesIn(api, volume, id, signal)).filter((name) => !Object.hasOwn(files, name))
    if (others.length > 0) return false
    await put(api, volume, id, archive, signal)
    return true
  })
  if (written) return
  // The Engine has no call that deletes a file.
  await removeVolume(api, volume, labels, signal)
  await createVolume(api, meter, { name: volume, labels: fromDocker(found.Labels) ?? labels }, signal)
  await withHelper(api, spec, signal, (id) => put(api, volume, id, archive, signal))
}

/** @param user of the volume's directory, too @throws EngineError; RangeError for a user or a file name that is none */
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
  if (uid === undefined) throw new RangeError('files belong to a user by number, uid or uid:gid')
  return { uid: Number(uid), gid: Number(gid) }
}

/** @param mode of the volume's own directory */
async function archiveOf(files: Readonly<Record<string, string>>, owner: Owner, mode: number): Promise<Buffer> {
  const tar = pack()
  const written = buffer(tar)
  const mtime = new Date(0)
  tar.entry({ name: `${directory}/`, type: 'directory', mode, mtime, ...owner })
  for (const [name, text] of Object.entries(files)) {
    if (!/^[\w-][\w.-]*$/.test(name))
      throw new RangeError('the name of a file in a volume is letters, digits, dots, dashes')
    tar.entry({ name: `${directory}/${name}`, mode: 0o400, mtime, ...owner }, text)
  }
  tar.finalize()
  return written
}

/** Has no network and no rights, though it never runs; labelled, so that one left over is found. */
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

/** One left over by an interrupted call goes first. */
async function withHelper<T>(
  api: EngineApi,
  spec: ContainerSpec,
  signal: AbortSignal,
  work: (id: string) => Promise<T>,
): Promise<T> {
  await removeContainer(api, spec.name, spec.labels, signal)
  try {
    const id = await createHelper(api, spec, signal)
    // The Engine makes a volume that went away since it was looked for; what it made is nothing to write into.
    for (const { volume } of spec.volumes)
      await requireVolume(api, `write files to volume ${volume}`, volume, spec.labels, signal)
    return await work(id)
  } finally {
    await removeContainer(api, spec.name, spec.labels, signal)
  }
}

/** Its root can be written, because the Engine puts no files into a container whose root cannot, and keeps what the volume holds. */
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

/** First parts of the paths that a volume holds. */
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
