// Maps the Engine's events to stacks. Events of containers have their labels. Events of networks and volumes have none,
// so their stacks are looked up: all at the beginning, and each that is created later.
import type Dockerode from 'dockerode'
import { type HostEvent, type Ownership, EngineError, fromDocker, isOwned, ownedFilter } from '../index.ts'
import { linesOf } from '@tenantry/contract'
import { segment, type EngineApi } from './engine-api.ts'
import { statusOf } from './errors.ts'
import { consumeStream } from './consume-stream.ts'

/** Filter of events. It excludes health checks and commands, which cause most events of a host. */
const eventFilter = {
  type: ['container', 'network', 'volume'],
  event: [
    'create',
    'start',
    'die',
    'stop',
    'kill',
    'oom',
    'pause',
    'unpause',
    'restart',
    'rename',
    'update',
    'health_status',
    'destroy',
    'connect',
    'disconnect',
    'remove',
  ],
}

const maxLineBytes = 1024 * 1024

interface EngineEvent {
  Type: string
  Action: string
  Actor: { ID: string; Attributes: Record<string, string> | null }
}

/** Yields events until the Engine ends the connection. */
export async function* events(
  api: EngineApi,
  owned: Ownership,
  signal: AbortSignal,
): AsyncGenerator<HostEvent, undefined> {
  const doing = 'follow events'
  const response = await api.open({ doing, method: 'GET', path: '/events', query: { filters: eventFilter } }, signal)
  const source = consumeStream(doing, response, signal)
  // After the connection is open, an event reports every object that is created.
  const stacks = await stacksOf(api, owned, signal).catch((cause: unknown) => {
    response.destroy()
    throw cause
  })
  for await (const event of parse(source)) {
    const stack = await stackOf(api, event, owned, stacks, signal)
    if (stack !== undefined) yield { stack, what: `${event.Type} ${event.Action}` }
  }
}

/** Stacks of the owner's networks and volumes, by `TYPE ID`. The Engine's ID of a volume is its name. */
type Stacks = Map<string, string>

async function stacksOf(api: EngineApi, owned: Ownership, signal: AbortSignal): Promise<Stacks> {
  const query = { filters: ownedFilter(owned) }
  const networks = (await api.request(
    { doing: 'list networks', method: 'GET', path: '/networks', query },
    signal,
  )) as Dockerode.NetworkInspectInfo[]
  const volumes = (await api.request({ doing: 'list volumes', method: 'GET', path: '/volumes', query }, signal)) as {
    Volumes: Dockerode.VolumeInspectInfo[] | null
  }
  const stacks: Stacks = new Map()
  for (const { Id, Labels } of networks) stacks.set(`network ${Id}`, fromDocker(Labels)?.stack ?? '')
  for (const { Name, Labels } of volumes.Volumes ?? []) stacks.set(`volume ${Name}`, fromDocker(Labels)?.stack ?? '')
  return stacks
}

async function stackOf(
  api: EngineApi,
  event: EngineEvent,
  owned: Ownership,
  stacks: Stacks,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { Type: type, Action: action, Actor: actor } = event
  if (type === 'container') return isOwned(actor.Attributes, owned) ? fromDocker(actor.Attributes)?.stack : undefined
  const key = `${type} ${actor.ID}`
  if (action === 'create') {
    const labels = await labelsOf(api, `/${type}s/${segment(actor.ID)}`, signal)
    const stack = isOwned(labels, owned) ? fromDocker(labels)?.stack : undefined
    if (stack !== undefined) stacks.set(key, stack)
  }
  const stack = stacks.get(key)
  if (action === 'destroy' || action === 'remove') stacks.delete(key)
  return stack
}

/** Returns the labels of an object; undefined if it is already gone. */
async function labelsOf(
  api: EngineApi,
  path: string,
  signal: AbortSignal,
): Promise<Record<string, string> | null | undefined> {
  try {
    const found = await api.request({ doing: 'read a new object', method: 'GET', path }, signal)
    return (found as { Labels: Record<string, string> | null }).Labels
  } catch (error) {
    if (statusOf(error) === 404) return undefined
    throw error
  }
}

/** Parses one JSON object per line. */
async function* parse(source: AsyncIterable<Buffer>): AsyncGenerator<EngineEvent, undefined> {
  const tooLong = () => new EngineError('ENGINE_FAILED', 'The Docker Engine sent an event of more than 1 MiB.')
  for await (const line of linesOf(source, maxLineBytes, tooLong)) {
    if (line.trim() !== '') yield parseEvent(line)
  }
}

function parseEvent(line: string): EngineEvent {
  try {
    return JSON.parse(line) as EngineEvent
  } catch (cause) {
    throw new EngineError('ENGINE_FAILED', 'The Docker Engine sent an event that is not valid JSON.', { cause })
  }
}
