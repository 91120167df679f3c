// The services that a home is restored into before a tenant uses it: a Postgres and an idle process with the volume of
// files, without a network. Pure.
import { onHost, postgresService, type Service, type Stack } from '../stacks/index.ts'
import { runtimeData } from './home-location.ts'

const megabyte = 2 ** 20
const sizes = {
  postgres: { memoryBytes: 768 * megabyte, cpuMillis: 1_000, pids: 256 },
  files: { memoryBytes: 256 * megabyte, cpuMillis: 1_000, pids: 64 },
}

/** The parts of a scratch stack that depend on its use. */
export interface ScratchParts {
  /** Images of the services. */
  images: { postgres: string; runtime: string }
  /** Name of the volume of the database; absent: `data`. */
  dataVolume?: string
  /** The host, in a region with several. */
  host?: string
  /** Whether there is a volume of files; absent: there is one. */
  hasFiles?: boolean
}

/**
 * Returns the scratch stack.
 * @param id a new tenant's, whose own services take over the volumes later, or one of `scratchId`
 */
export function scratchStack(id: string, parts: ScratchParts): Stack {
  const { images, dataVolume = 'data', hasFiles = true } = parts
  const postgres = postgresService({
    image: images.postgres,
    network: { network: '', aliases: [] },
    resources: sizes.postgres,
    connections: 20,
    reservedConnections: 0,
    volume: dataVolume,
    restarts: 0,
  })
  const files: Service = {
    name: 'files',
    image: images.runtime,
    command: ['-e', 'setInterval(() => undefined, 2 ** 30)'],
    environment: {},
    secrets: {},
    volumes: { files: runtimeData },
    scratch: { '/tmp': 'size=64m,mode=1777' },
    networks: [],
    published: [],
    health: { command: ['true'], intervalSeconds: 60, timeoutSeconds: 5, retries: 3, startSeconds: 20 },
    resources: sizes.files,
    user: '10001:10001',
    stopSeconds: 1,
    replace: 'stop-first',
    isAttached: false,
  }
  const host = onHost(parts)
  return {
    id,
    state: 'running',
    networks: [],
    volumes: [
      { name: dataVolume, mustExist: false, isGuarded: true, ...host },
      ...(hasFiles ? [{ name: 'files', mustExist: false, isGuarded: false, ...host }] : []),
    ],
    services: [{ ...postgres, networks: [], ...host }, ...(hasFiles ? [{ ...files, ...host }] : [])],
  }
}

/** Returns the stack without its services. The data that they have written stays. */
export function emptiedStack(stack: Stack): Stack {
  return { ...stack, services: [] }
}
