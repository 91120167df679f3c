// What the suite needs of a platform under attack: an installation of `npm start`, or a platform on a Docker Engine.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DockerPlatform } from '#test/support/docker-platform.ts'
import type { Installation } from '#test/support/installation.ts'
import type { Target } from './target.ts'
import type { ServiceSource } from './services.ts'

export interface AttackedPlatform {
  target: Target
  controlUrl: string
  gatewayUrl: string
  platformKey: string
  /** The source of the services' processes, for the probe. */
  services: ServiceSource
  /** Returns the ports at which a Postgres or a Postgres proxy listens for tenants. */
  postgresPorts(): Promise<number[]>
  /** Returns what the services have logged so far. */
  log(): string
}

export function localPlatform(installation: Installation): AttackedPlatform {
  const { controlUrl, gatewayUrl, platformKey, data } = installation
  return {
    target: 'npm start',
    controlUrl,
    gatewayUrl,
    platformKey,
    services: { runDirectory: join(data, 'run') },
    async postgresPorts() {
      const ports = JSON.parse(await readFile(join(data, 'ports.json'), 'utf8')) as Record<string, number>
      return Object.entries(ports).flatMap(([name, port]) => (/postgres/i.test(name) ? [port] : []))
    },
    log: () => installation.output().stderr,
  }
}

/** Returns a platform on an engine as one of its two targets. @param engine address of the engine */
export function dockerPlatform(
  platform: DockerPlatform,
  engine: string,
  target: Exclude<Target, 'npm start'>,
): AttackedPlatform {
  const { controlUrl, gatewayUrl, platformKey, installation, databaseHost, postgres } = platform
  return {
    target,
    controlUrl,
    gatewayUrl,
    platformKey,
    services: {
      engine,
      installation,
      processes: { 'control-plane': platform.controlPlane.pid, 'control-database': postgres.pid() },
    },
    postgresPorts: () => Promise.resolve([Number(databaseHost.split(':')[1])]),
    log: () => platform.controlPlane.output(),
  }
}
