// Docker's own client at the tests' engine, and the containers of a tenant there.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { testEngine } from '#test/support/docker-platform.ts'

export interface Tenant {
  id: string
  name: string
  key: string
}

const run = promisify(execFile)
export const docker = async (...args: string[]) => (await run('docker', ['-H', testEngine(), ...args])).stdout.trim()

/** Names of a tenant's containers of this service, running or not, a line each. */
export const containersOf = ({ id }: Tenant, service: string) =>
  docker(
    'ps',
    '-a',
    '--filter',
    `label=tenantry.stack=${id}`,
    '--filter',
    `label=tenantry.service=${service}`,
    '--format',
    '{{.Names}}',
  )
