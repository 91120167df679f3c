// The directories of the gateways: `gateway/` of the first one, `gateway-1/` of the next, and so on.
import { access, mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissingFile } from '@tenantry/contract'
import { writeAtomically } from './data-directory.ts'
import { setOwner, type Identity } from './process/unprivileged.ts'

/** Files of the last received state, with which a gateway serves until the control plane has sent it the present one. */
const stateFiles = ['routes.ndjson', 'blocked-addresses.ndjson', 'control-clock.json']

/** Returns the name of a gateway's service and directory. */
export function gatewayName(number: number): string {
  return number === 0 ? 'gateway' : `gateway-${number}`
}

/**
 * Creates the directories of the gateways after the first. A new one begins with the state of the first: without routes, it
 * would respond to requests for existing tenants with 404 until the control plane has sent them.
 */
export async function createGatewayDirectories(
  root: string,
  gateways: number,
  identity: Identity | undefined,
): Promise<void> {
  for (let number = 1; number < gateways; number++) {
    const directory = join(root, gatewayName(number))
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await setOwner(directory, identity)
    for (const name of stateFiles) {
      const text = await textOf(join(root, gatewayName(0), name))
      if (text !== undefined && !(await exists(join(directory, name))))
        await writeAtomically(join(directory, name), text, 0o600, identity)
    }
  }
}

/** Returns the numbers of the gateways that an earlier start had in addition to the present ones. */
export async function formerGateways(root: string, gateways: number): Promise<number[]> {
  const numbers = (await readdir(root)).map((name) => Number(/^gateway-([1-9]\d{0,3})$/.exec(name)?.[1] ?? 0))
  return numbers.filter((number) => number >= gateways && number > 0).sort((a, b) => a - b)
}

async function textOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    if (isMissingFile(cause)) return undefined
    throw cause
  }
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  )
}
