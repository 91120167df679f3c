// Which ports an installation takes: the same ones at every start, when they are still free.
import { createHash } from 'node:crypto'
import { readText, writeWhole } from './data-directory.ts'
import { holderOf, isFree, nextFree } from './process/ports.ts'
import type { Ports } from './services.ts'

export class PortTaken extends Error {}

const defaultPort = 4400
/**
 * Where the search for the ports that nobody types begins: its own place for each installation, so that two that start at
 * once don't meet.
 */
function innerPorts(file: string): number {
  return 20_000 + (createHash('sha256').update(file).digest().readUInt16BE(0) % 10_000)
}

/**
 * `asked` is the control plane's port from the command line.
 * @throws PortTaken when a port that was asked for is not free, naming its holder and the remedy
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
    for (const port of [requested, requested + 1]) await demandFree(port)
  }
  const control = await choose(requested ?? before?.control, requested ?? defaultPort)
  const gateway = await choose(requested === undefined ? (before?.gateway ?? control + 1) : requested + 1, control + 1)
  const ports: Ports = {
    control,
    gateway,
    gatewayInternal: await choose(before?.gatewayInternal, innerPorts(file)),
    runtime: await choose(before?.runtime, innerPorts(file)),
    postgres: await choose(before?.postgres, innerPorts(file)),
  }
  await writeWhole(file, JSON.stringify(ports), 0o644, undefined)
  return ports
}

async function demandFree(port: number): Promise<void> {
  if (await isFree(port)) return
  const holder = await holderOf(port)
  throw new PortTaken(
    `port ${port} is taken${holder === undefined ? '' : ` by ${holder}`}. ` +
      'Stop that program, choose another port with --port N, or leave --port out to take the next free one.',
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
