// The installation's name: the label of all that it makes on an engine.
import { ConfigurationError } from '@tenantry/contract'
import type { Database } from './database.ts'

/**
 * @param wanted name that somebody else knows already, e.g. the door to the Docker Engine; one without tenants takes it
 * @throws ConfigurationError when the control database is another installation's
 */
export async function nameInstallation(database: Database, wanted: string | undefined): Promise<string> {
  if (wanted !== undefined) {
    await database.$executeRaw`
      update installation set name = ${wanted}::uuid
      where name <> ${wanted}::uuid and not exists (select 1 from tenants)`
  }
  const { name } = await database.installation.findFirstOrThrow()
  if (wanted !== undefined && wanted !== name)
    throw new ConfigurationError(
      `the control database is of the installation ${name}, and TENANTRY_INSTALLATION says ${wanted}`,
    )
  return name
}
