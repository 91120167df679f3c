// Chooses the ports of an installation: the same ones at every start, if they are still free.
import { createHash } from 'node:crypto'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { readText, writeAtomically } from './data-directory.ts'
import { holderOf, isFree, nextFree } from './process/ports.ts'
import type { Ports } from './services.ts'

export class PortTaken extends Error {}

const defaultPort = 4400
/**
 * Returns the first port of the search for internal ports. It differs between installations, so that concurrent starts
 * do not collide.
 */
function firstInternalPort(file: string): number {
  return 20_000 + (createHash('sha256').update(file).digest().readUInt16BE(0) % 10_000)
}

/**
 * Chooses the ports.
 * @param requested the control plane's port from the command line
 * @param counts number of runtimes and of gateways, each of which has a port
 * @throws PortTaken if a requested port is not free, with the program that uses it and the remedy
 */
export async function choosePorts(
  file: string,
  requested: number | undefined,
  { runtimes, gateways }: { runtimes: number; gateways: number },
): Promise<Ports> {
  const before = await rememberedPorts(file)
  const taken = new Set<number>()
  const remembered = Object.values(before ?? {}).flat()
  const choose = async (wanted: number | undefined, from: number) => {
    const port =
      wanted !== undefined && !taken.has(wanted) && (await isFree(wanted))
        ? wanted
        : await nextFree(from, new Set([...taken, ...remembered]))
    taken.add(port)
    return port
  }
  if (requested !== undefined) {
    for (const port of [requested, requested + 1]) await requireFree(port)
  }
  const control = await choose(requested ?? before?.control, requested ?? defaultPort)
  const gateway = await choose(requested === undefined ? (before?.gateway ?? control + 1) : requested + 1, control + 1)
  const internal = (wanted: number | undefined) => choose(wanted, firstInternalPort(file))
  const gatewayInternals = [await internal(before?.gatewayInternals[0])]
  const postgres = await internal(before?.postgres)
  // The addresses of tenants' own services are others than 127.0.0.1, where these ports stay free.
  const tenantPostgres = await internal(before?.tenantPostgres)
  const tenantRuntime = await internal(before?.tenantRuntime)
  // These come last, so that a further runtime or gateway takes none of the other ports.
  const runtimePorts: number[] = []
  for (let number = 0; number < runtimes; number++) runtimePorts.push(await internal(before?.runtimes[number]))
  for (let number = 1; number < gateways; number++)
    gatewayInternals.push(await internal(before?.gatewayInternals[number]))
  const ports: Ports = {
    control,
    gateway,
    gatewayInternals,
    runtimes: runtimePorts,
    postgres,
    tenantPostgres,
    tenantRuntime,
  }
  await writeAtomically(file, JSON.stringify(ports), 0o644, undefined)
  return ports
}

/** Returns free ports that the installation does not use, for services that run for a moment only. */
export async function sparePorts(file: string, ports: Ports, count: number): Promise<number[]> {
  const taken = new Set(Object.values(ports).flat())
  const spare: number[] = []
  while (spare.length < count) {
    const port = await nextFree(firstInternalPort(file), taken)
    taken.add(port)
    spare.push(port)
  }
  return spare
}

async function requireFree(port: number): Promise<void> {
  if (await isFree(port)) return
  const holder = await holderOf(port)
  throw new PortTaken(
    `Port ${port} is taken${holder === undefined ? '' : ` by ${holder}`}. ` +
      'Stop that program, choose another port with --port N, or omit --port to use the next free one.',
  )
}

const StoredPorts = Type.Object({
  control: Type.Integer(),
  gateway: Type.Integer(),
  /** Port of the only gateway in files of earlier versions. */
  gatewayInternal: Type.Optional(Type.Integer()),
  gatewayInternals: Type.Optional(Type.Array(Type.Integer())),
  /** Port of the only runtime in files of earlier versions. */
  runtime: Type.Optional(Type.Integer()),
  runtimes: Type.Optional(Type.Array(Type.Integer())),
  postgres: Type.Integer(),
  tenantPostgres: Type.Optional(Type.Integer()),
  tenantRuntime: Type.Optional(Type.Integer()),
})

/** The ports of the last start. Files of earlier versions lack some. */
type RememberedPorts = Omit<Ports, 'tenantPostgres' | 'tenantRuntime'> & Partial<Ports>

function listOf(port: number | undefined): number[] {
  return port === undefined ? [] : [port]
}

async function rememberedPorts(file: string): Promise<RememberedPorts | undefined> {
  try {
    const value: unknown = JSON.parse(await readText(file))
    if (!Value.Check(StoredPorts, value)) return undefined
    const { runtime, runtimes = listOf(runtime), gatewayInternal, gatewayInternals, ...others } = value
    return { ...others, runtimes, gatewayInternals: gatewayInternals ?? listOf(gatewayInternal) }
  } catch {
    return undefined
  }
}
