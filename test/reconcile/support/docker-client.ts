// Runs Docker's command line client with the tests' engine, and lists a tenant's containers.
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

/** Returns the names of a tenant's containers of a service, running or not, one on each line. */
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
