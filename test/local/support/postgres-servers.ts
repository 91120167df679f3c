// The two Postgres servers of a stopped installation, without its other services.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { prepareDataDirectory } from '#local/data-directory.ts'
import { postgresServers, postgresService, type PostgresServer } from '#local/postgres-servers.ts'
import { postgresBinaries } from '#local/process/postgres-files.ts'
import { socketUrl } from '#local/process/postgres-socket.ts'
import { asIdentity, serviceIdentity } from '#local/process/unprivileged.ts'
import { until } from '#test/support/until.ts'

export interface RunningServers {
  /** Returns the superuser's URL of a database in the server of homes. */
  homes(database: string): string
  /** Returns the superuser's URL of a database in the server of the control database. */
  control(database: string): string
  stop(): Promise<void>
}

/** Starts both servers of a data directory. */
export async function startServers(root: string): Promise<RunningServers> {
  const identity = await serviceIdentity()
  const data = await prepareDataDirectory(root, identity)
  const servers = postgresServers(data, await readFile(join(root, 'secrets', 'postgres-password'), 'utf8'), 1)
  const binaries = await postgresBinaries()
  const start = async (server: PostgresServer) => {
    const service = postgresService(server, binaries, data, 0)
    await service.prepare?.()
    const { command, args } = await asIdentity(identity, service.needs, service)
    const child = spawn(command, args, { cwd: service.cwd, env: service.environment, stdio: 'ignore' })
    await until(async () => (await service.ready(AbortSignal.timeout(1_000))) === true, `the server ${server.name}`)
    return child
  }
  const children = await Promise.all([start(servers.homes), start(servers.controlDatabase)])
  return {
    homes: (database) => socketUrl(servers.homes, database),
    control: (database) => socketUrl(servers.controlDatabase, database),
    async stop() {
      for (const child of children.filter(({ exitCode }) => exitCode === null)) {
        const gone = once(child, 'exit')
        child.kill('SIGINT')
        await gone
      }
    },
  }
}
