// The host's networks and volumes: records and directories. A network is a part of the loopback addresses, and separates nothing.
import { randomBytes } from 'node:crypto'
import { execFile } from 'node:child_process'
import { chmod, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isMissingFile, replaceFile } from '@tenantry/contract'
import { Value } from 'typebox/value'
import type { TSchema, Static } from 'typebox'
import {
  EngineError,
  type Labels,
  type NetworkSpec,
  type ObservedVolume,
  type Ownership,
  type VolumeSpec,
} from '../../../control-plane/src/engines/index.ts'
import { setOwner, type Identity } from '../process/unprivileged.ts'
import { NetworkForm, VolumeForm } from './container-record.ts'
import { isObjectName, type HostPaths } from './host-paths.ts'

const run = promisify(execFile)
const measureMilliseconds = 60_000
const fileName = /^[a-z0-9][a-z0-9.-]{0,100}$/

/** Whether an object belongs to an owner. */
export function isOwnedBy({ installation, stack }: Labels, owner: Ownership): boolean {
  return installation === owner.installation && (owner.stack === undefined || owner.stack === stack)
}

/** @throws EngineError FOREIGN_OBJECT if the object belongs to another owner */
export function requireOwned(kind: string, name: string, labels: Labels, owner: Ownership): void {
  if (!isOwnedBy(labels, owner))
    throw new EngineError('FOREIGN_OBJECT', `A ${kind} named "${name}" exists that does not belong to Tenantry.`)
}

/** Reads the JSON files of a kind, by name. Other entries of the directory, such as an incomplete file, are ignored. */
export async function readRecords<S extends TSchema>(directory: string, form: S, file: (name: string) => string) {
  const records = new Map<string, Static<S>>()
  for (const entry of await readdir(directory)) {
    const name = entry.replace(/\.json$/, '')
    if (!isObjectName(name)) continue
    const text = await readFile(file(name), 'utf8').catch((cause: unknown) => {
      if (isMissingFile(cause)) return undefined
      throw cause
    })
    if (text === undefined) continue
    const record: unknown = JSON.parse(text)
    if (!Value.Check(form, record)) throw new Error(`${file(name)} has another form than this version writes.`)
    records.set(name, record)
  }
  return records
}

export class HostNetworks {
  readonly #paths: HostPaths
  readonly #networks: Map<string, NetworkSpec>

  private constructor(paths: HostPaths, networks: Map<string, NetworkSpec>) {
    this.#paths = paths
    this.#networks = networks
  }

  static async open(paths: HostPaths): Promise<HostNetworks> {
    await mkdir(paths.networks, { recursive: true, mode: 0o700 })
    return new HostNetworks(paths, await readRecords(paths.networks, NetworkForm, (name) => paths.network(name)))
  }

  all(): NetworkSpec[] {
    return [...this.#networks.values()]
  }

  async create(spec: NetworkSpec): Promise<void> {
    const existing = this.#networks.get(spec.name)
    if (existing !== undefined) {
      requireOwned('network', spec.name, existing.labels, spec.labels)
      return
    }
    if (this.all().some(({ subnet }) => subnet === spec.subnet))
      throw new EngineError('SUBNET_TAKEN', `Cannot create network ${spec.name}: the subnet overlaps an existing one.`)
    await replaceFile(this.#paths.network(spec.name), JSON.stringify(spec), { mode: 0o600 })
    this.#networks.set(spec.name, spec)
  }

  async remove(name: string, owner: Ownership): Promise<void> {
    const existing = this.#networks.get(name)
    if (existing === undefined) return
    requireOwned('network', name, existing.labels, owner)
    await rm(this.#paths.network(name), { force: true })
    this.#networks.delete(name)
  }
}

export class HostVolumes {
  readonly #paths: HostPaths

  private constructor(paths: HostPaths) {
    this.#paths = paths
  }

  static async open(paths: HostPaths): Promise<HostVolumes> {
    await mkdir(paths.volumes, { recursive: true, mode: 0o711 })
    return new HostVolumes(paths)
  }

  /** Reads the volumes from the disk, where an operator may have removed one. */
  async all(): Promise<ObservedVolume[]> {
    const labels = (name: string) => join(this.#paths.volume(name), 'labels.json')
    return [...(await readRecords(this.#paths.volumes, VolumeForm, labels)).values()]
  }

  async create(spec: VolumeSpec): Promise<void> {
    const existing = await this.#find(spec.name)
    if (existing !== undefined) {
      requireOwned('volume', spec.name, existing.labels, spec.labels)
      return
    }
    const directory = this.#paths.volume(spec.name)
    await mkdir(this.#paths.volumeData(spec.name), { recursive: true, mode: 0o700 })
    await chmod(directory, 0o711)
    await replaceFile(join(directory, 'labels.json'), JSON.stringify(spec), { mode: 0o600 })
  }

  /** Gives a volume to the user of its program. @throws EngineError VOLUME_MISSING */
  async own(name: string, identity: Identity | undefined): Promise<void> {
    await this.#require(name)
    await setOwner(this.#paths.volumeData(name), identity)
  }

  /** Writes files that only their user can read. @param isWhole whether the volume's other files are removed */
  async write(
    name: string,
    files: Readonly<Record<string, string>>,
    identity: Identity | undefined,
    isWhole: boolean,
  ): Promise<void> {
    await this.own(name, identity)
    const directory = this.#paths.volumeData(name)
    if (isWhole) for (const entry of await readdir(directory)) await rm(join(directory, entry), { recursive: true })
    for (const [file, text] of Object.entries(files)) {
      if (!fileName.test(file))
        throw new EngineError('ENGINE_FAILED', `Invalid name of a file "${file.slice(0, 100)}".`)
      // A new file never follows a link that the tenant's own program may have left.
      const next = join(directory, `.${randomBytes(8).toString('hex')}`)
      const handle = await open(next, 'wx', 0o400)
      try {
        await handle.writeFile(text)
        if (identity !== undefined) await handle.chown(identity.uid, identity.gid)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(next, join(directory, file))
    }
  }

  /** Returns the labels of a volume; undefined if it does not exist. */
  async labels(name: string): Promise<Labels | undefined> {
    return (await this.#find(name))?.labels
  }

  async remove(name: string): Promise<void> {
    // The labels are the last to go, so that an interrupted removal is repeated.
    await rm(this.#paths.volumeData(name), { recursive: true, force: true })
    await rm(this.#paths.volume(name), { recursive: true, force: true })
  }

  /** Returns the bytes on disk of an owner's volumes. */
  async bytes(owner: Ownership): Promise<Record<string, number>> {
    const owned = (await this.all()).filter(({ labels }) => isOwnedBy(labels, owner))
    const sizes = await Promise.all(
      owned.map(async ({ name }) => [name, await bytesOf(this.#paths.volumeData(name))] as const),
    )
    return Object.fromEntries(sizes)
  }

  async #require(name: string): Promise<void> {
    if ((await this.#find(name)) === undefined)
      throw new EngineError('VOLUME_MISSING', `The volume "${name}" does not exist.`)
  }

  async #find(name: string): Promise<ObservedVolume | undefined> {
    this.#paths.volume(name)
    return (await this.all()).find((volume) => volume.name === name)
  }
}

/** Returns the bytes on disk below a directory. A file that is removed meanwhile is not an error. */
async function bytesOf(directory: string): Promise<number> {
  const { stdout } = await run('du', ['-s', '--block-size=1', directory], { timeout: measureMilliseconds }).catch(
    (error: unknown) => {
      if (error instanceof Error && 'stdout' in error && typeof error.stdout === 'string')
        return { stdout: error.stdout }
      throw error
    },
  )
  return Number(stdout.split('\t')[0] ?? 0)
}
