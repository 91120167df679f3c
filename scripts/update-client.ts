// `npm run update:client` writes the types of the typed client, from the OpenAPI document of an installation that it starts.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OpenAPI3 } from 'openapi-typescript'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { clientTypes, clientTypesFile } from './client/client-types.ts'

const timeoutMs = 10_000
const directory = await mkdtemp(join(tmpdir(), 'tenantry-client-'))
const installation = await startInstallation({ dataDirectory: join(directory, 'data') })
try {
  const response = await fetch(`${installation.controlUrl}/openapi.json`, { signal: AbortSignal.timeout(timeoutMs) })
  if (!response.ok) throw new Error(`GET /openapi.json responds with ${response.status}: ${await response.text()}`)
  await writeFile(clientTypesFile, await clientTypes((await response.json()) as OpenAPI3))
  console.log(`wrote ${clientTypesFile}`)
} finally {
  await removeInstallation(installation)
  await rm(directory, { recursive: true, force: true })
}
