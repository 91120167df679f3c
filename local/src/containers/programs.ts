// The programs that the host runs, in the place of images: Postgres and the runtime of this installation.
import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ContainerSpec, HostImage } from '../../../control-plane/src/engines/index.ts'
import type { Command } from '../process/unprivileged.ts'
import { plainMemory, runtimeMemory, type MemoryLimit } from './limits.ts'

const project = fileURLToPath(new URL('../../../', import.meta.url))
const programs = join(project, 'local/programs')

/** The directories and the address that a program has instead of those of a container. */
export interface ProgramLocation {
  /** Address on the loopback interface, which belongs to this program alone. */
  address: string
  /** Directories by the paths that they have in a container. */
  directories: Readonly<Record<string, string>>
  /** Directory of the Unix socket of a Postgres. */
  sockets: string
  /** The working directory. */
  work: string
}

/** The settings that all programs of an installation share. */
export interface ProgramOptions {
  /** Directory of Postgres' binaries with their libraries. */
  postgresRoot: string
  /** Ports on the loopback addresses of tenants. */
  ports: { postgres: number; runtime: number }
  /** URL of the gateway's internal port. */
  gatewayUrl: string
  /** The template of data directories, and the file that decides who may log in. */
  template: string
  hostBasedAccess: string
  logLevel: string
  /** The operator's settings of all runtimes. */
  runtimeSettings: Readonly<Record<string, string>>
}

interface Program extends HostImage {
  stopSignal: 'SIGINT' | 'SIGTERM'
  memory: MemoryLimit
  /** Position in the stop order of an installation. */
  stopOrder: number
  command(spec: ContainerSpec): Command
  environment(options: ProgramOptions, location: ProgramLocation): Record<string, string>
}

/** The ID of a program never changes: each start runs the present code of the installation. */
const idOf = (component: string) =>
  `sha256:${createHash('sha256').update(`tenantry process ${component}`).digest('hex')}`

const megabyte = 1024 * 1024
const postgresVolume = '/var/lib/postgresql'

/** The programs by the names of their images. */
export const programImages: Readonly<Record<'postgres' | 'runtime', Program>> = {
  postgres: {
    id: idOf('postgres'),
    component: 'postgres',
    // Fast shutdown: it ends sessions and preserves committed data.
    stopSignal: 'SIGINT',
    memory: plainMemory,
    stopOrder: 1,
    command: (spec) => ({ command: join(programs, 'start-postgres'), args: [...spec.command] }),
    environment({ ports, template, hostBasedAccess }, { address, directories, sockets }) {
      const volume = directories[postgresVolume] ?? ''
      return {
        NODE_PROGRAM: process.execPath,
        POSTGRES_VOLUME: volume,
        POSTGRES_TEMPLATE: template,
        POSTGRES_HBA: hostBasedAccess,
        PGDATA: join(volume, 'data'),
        PGSOCKETS: sockets,
        PGHOST: address,
        PGPORT: String(ports.postgres),
      }
    },
  },
  runtime: {
    id: idOf('runtime'),
    component: 'runtime',
    stopSignal: 'SIGTERM',
    memory: runtimeMemory,
    stopOrder: 0,
    command: ({ resources }) => ({
      command: process.execPath,
      args: [
        // In a container, Node chooses this from the container's limit.
        `--max-old-space-size=${Math.floor(resources.memoryBytes / 2 / megabyte)}`,
        '--enable-source-maps',
        join(project, 'tenant-runtime/src/main.ts'),
      ],
    }),
    environment: ({ ports, gatewayUrl, logLevel, runtimeSettings }, { address, work }) => ({
      ...runtimeSettings,
      NODE_ENV: 'production',
      NODE_COMPILE_CACHE: join(work, 'compiled'),
      TENANTRY_HOST: address,
      TENANTRY_PORT: String(ports.runtime),
      TENANTRY_CONTROL_URL: gatewayUrl,
      TENANTRY_LOG_LEVEL: logLevel,
    }),
  },
}

/** Returns the program of an image, by its name or ID; undefined for another image. */
export function programOf(reference: string): Program | undefined {
  return Object.entries(programImages).find(([name, { id }]) => reference === name || reference === id)?.[1]
}

/** Directories that every program reads. */
export function programDirectories({ postgresRoot }: ProgramOptions): string[] {
  return [project, postgresRoot, dirname(dirname(process.execPath))]
}

/**
 * Returns the environment of a container's program. Paths inside the container become those of this machine, and its
 * addresses and ports those of the loopback interface.
 */
export function programEnvironment(
  program: Program,
  spec: ContainerSpec,
  options: ProgramOptions,
  location: ProgramLocation,
): Record<string, string> {
  const located = Object.entries(spec.environment).map(([name, value]) => [name, locatedPath(value, location)] as const)
  return {
    ...Object.fromEntries(located),
    PATH: [programs, dirname(process.execPath), join(options.postgresRoot, 'bin'), '/usr/bin', '/bin'].join(':'),
    LANG: 'C.UTF-8',
    TZ: 'UTC',
    ...program.environment(options, location),
  }
}

/** Returns a command of a container, whose own programs are those in `local/programs/`. */
export function programCommand([command = '', ...args]: readonly string[]): Command {
  const own = '/usr/local/bin/'
  return { command: command.startsWith(own) ? join(programs, command.slice(own.length)) : command, args }
}

function locatedPath(value: string, { directories }: ProgramLocation): string {
  for (const [path, directory] of Object.entries(directories))
    if (value === path || value.startsWith(`${path}/`)) return directory + value.slice(path.length)
  return value
}
