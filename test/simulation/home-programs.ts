// Commands inside a simulated container: health checks, and work on a tenant's home in its Postgres.
import type { HomeServer } from '#control-plane/homes/home-server.ts'
import type { Actor } from './control-plane.ts'
import type { Docker } from './docker.ts'
import type { Container, Volume } from './docker-objects.ts'

const schemaExists = 3
const schemaMissing = 4

/** The end of a command inside a container. */
export interface CommandResult {
  code: number
  stdout: string
}

/** @returns the exit code */
export function runInside(
  docker: Docker,
  container: Container,
  cluster: Volume | undefined,
  command: readonly string[],
  actor: Actor,
): number {
  if (!docker.responds(container)) return 1
  const [program, work, tenantId = ''] = command
  if (program !== 'home' || cluster === undefined) return 0
  const home = cluster.homes.get(tenantId)
  switch (work) {
    case 'create':
      if (home !== undefined) return schemaExists
      docker.makeHome(cluster, tenantId, actor)
      return 0
    case 'repair':
      if (home === undefined) return schemaMissing
      home.isWhole = true
      return 0
    case 'set-password':
    case 'check':
    case 'migrate':
      return home?.isWhole === true ? 0 : 1
    case 'drop':
      cluster.homes.delete(tenantId)
      return 0
    default:
      return 0
  }
}

/** Returns a home server that runs commands in a container. */
export function homeBy(run: (command: readonly string[]) => Promise<number>): HomeServer {
  const done = async (work: string, tenantId = '') => {
    const code = await run(['home', work, tenantId])
    if (code !== 0) throw new Error(`${work} ended with ${code}`)
  }
  const repair = async (tenantId: string) => {
    const code = await run(['home', 'repair', tenantId])
    if (code !== 0 && code !== schemaMissing) throw new Error(`repair ended with ${code}`)
    return code === 0 ? ('to be migrated' as const) : ('missing' as const)
  }
  return {
    async prepare(created) {
      await created()
      await done('prepare')
    },
    async create(tenantId) {
      const code = await run(['home', 'create', tenantId])
      if (code === 0) return 'whole'
      if (code !== schemaExists || (await repair(tenantId)) === 'missing') throw new Error(`create ended with ${code}`)
      return 'to be migrated'
    },
    repair,
    async migrate(tenantId) {
      await done('migrate', tenantId)
      return { lost: [] }
    },
    check: (tenantId) => done('check', tenantId),
    setSqlLogin: () => Promise.resolve(),
    setSqlPassword: (tenantId) => done('set-password', tenantId),
    setServicePasswords: (tenantId) => done('set-password', tenantId),
    endSessions: (tenantId) => done('end-sessions', tenantId),
    openLogins: (tenantId) => done('open-logins', tenantId),
    dropSchema: () => Promise.resolve(),

    async drop(tenantId, { onPart }) {
      // A run that ends here leaves the home as it was, as after a first part without tables.
      await onPart()
      await done('drop', tenantId)
    },
  }
}
