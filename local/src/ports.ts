// Chooses the ports of an installation: the same ones at every start, if they are still free.
import { createHash } from 'node:crypto'
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
 * @throws PortTaken if a requested port is not free, with the program that uses it and the remedy
 */
export async function choosePorts(file: string, requested: number | undefined): Promise<Ports> {
  const before = await rememberedPorts(file)
  const taken = new Set<number>()
  const choose = async (wanted: number | undefined, from: number) => {
    const port =
      wanted !== undefined && !taken.has(wanted) && (await isFree(wanted)) ? wanted : await nextFree(from, taken)
    taken.add(port)
    return port
  }
  if (requested !== undefined) {
    for (const port of [requested, requested + 1]) await requireFree(port)
  }
  const control = await choose(requested ?? before?.control, requested ?? defaultPort)
  const gateway = await choose(requested === undefined ? (before?.gateway ?? control + 1) : requested + 1, control + 1)
  const ports: Ports = {
    control,
    gateway,
    gatewayInternal: await choose(before?.gatewayInternal, firstInternalPort(file)),
    runtime: await choose(before?.runtime, firstInternalPort(file)),
    postgres: await choose(before?.postgres, firstInternalPort(file)),
  }
  await writeAtomically(file, JSON.stringify(ports), 0o644, undefined)
  return ports
}

async function requireFree(port: number): Promise<void> {
  if (await isFree(port)) return
  const holder = await holderOf(port)
  throw new PortTaken(
    `Port ${port} is taken${holder === undefined ? '' : ` by ${holder}`}. ` +
      'Stop that program, choose another port with --port N, or omit --port to use the next free one.',
  )
}

async function rememberedPorts(file: string): Promise<Ports | undefined> {
  try {
    const value: unknown = JSON.parse(await readText(file))
    const names = ['control', 'gateway', 'gatewayInternal', 'runtime', 'postgres'] as const
    if (typeof value !== 'object' || value === null) return undefined
    const ports = value as Record<string, unknown>
    return names.every((name) => Number.isInteger(ports[name])) ? (ports as unknown as Ports) : undefined
  } catch {
    return undefined
  }
}
