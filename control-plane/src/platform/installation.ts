// The name of the installation, which labels all objects that it creates on an engine.
import { ConfigurationError } from '@tenantry/contract'
import type { Database } from './database.ts'

/**
 * Returns the installation's name.
 * @param configured name that other components, for example the Docker proxy, already use. An installation without
 * tenants adopts it.
 * @throws ConfigurationError if the control database belongs to another installation
 */
export async function nameInstallation(database: Database, configured: string | undefined): Promise<string> {
  if (configured !== undefined) {
    await database.$executeRaw`
      update installation set name = ${configured}::uuid
      where name <> ${configured}::uuid and not exists (select 1 from tenants)`
  }
  const { name } = await database.installation.findFirstOrThrow()
  if (configured !== undefined && configured !== name)
    throw new ConfigurationError(
      `The control database belongs to the installation ${name}, but TENANTRY_INSTALLATION is ${configured}.`,
    )
  return name
}
