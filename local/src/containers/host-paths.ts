// The files of the host of processes, below the data directory of the installation.
//
//   containers/users.json              numbers of the operating-system users
//   containers/template/               the data directory that each new Postgres copies
//   containers/networks/NAME.json      records of networks
//   containers/volumes/NAME/           labels.json, and data/, which belongs to the user of the program
//   containers/programs/NAME/          container.json, log files, and work/, the working directory of the program
//   s/NUMBER/                          the Unix socket of a Postgres; its path is short, as the kernel requires
import { join } from 'node:path'
import { EngineError } from '../../../control-plane/src/engines/index.ts'

const objectName = /^tenantry-[a-z0-9][a-z0-9_-]{0,120}$/

/** Whether an object of Tenantry can have this name. */
export function isObjectName(name: string): boolean {
  return objectName.test(name)
}

/** Paths of the host's files. Each throws EngineError for a name that no object of Tenantry has. */
export class HostPaths {
  readonly root: string
  readonly #data: string

  constructor(data: string) {
    this.#data = data
    this.root = join(data, 'containers')
  }

  get users(): string {
    return join(this.root, 'users.json')
  }

  get template(): string {
    return join(this.root, 'template')
  }

  get hostBasedAccess(): string {
    return join(this.root, 'pg_hba.conf')
  }

  get networks(): string {
    return join(this.root, 'networks')
  }

  network(name: string): string {
    return join(this.networks, `${checked(name)}.json`)
  }

  get volumes(): string {
    return join(this.root, 'volumes')
  }

  volume(name: string): string {
    return join(this.volumes, checked(name))
  }

  /** The directory that a program sees in place of the volume. */
  volumeData(name: string): string {
    return join(this.volume(name), 'data')
  }

  get containers(): string {
    return join(this.root, 'programs')
  }

  container(name: string): string {
    return join(this.containers, checked(name))
  }

  /** The directory of the sockets of all of a tenant's Postgres servers. */
  get allSockets(): string {
    return join(this.#data, 's')
  }

  sockets(user: number): string {
    return join(this.allSockets, String(user))
  }
}

function checked(name: string): string {
  if (isObjectName(name)) return name
  throw new EngineError('ENGINE_FAILED', `Invalid name of an object "${name.slice(0, 100)}".`)
}
