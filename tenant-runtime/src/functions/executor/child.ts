// The executor's process: compiles modules, runs them one at a time, each in a new instance, and reports the outcomes. It
// reads and writes its pipes synchronously, has no secrets except those of the current run, and is killed at the deadline.
import { readSync, writeSync } from 'node:fs'
import { hostModule, memoryImport, pageBytes, wasiModule } from '../module/abi.ts'
import { HostFunctions } from './host-functions.ts'
import { decodeFrame, encodeFrame, prefixBytes, type Outcome, type Reply, type Request } from './protocol.ts'
import { Wasi } from './wasi.ts'
import { RunLog } from './run-log.ts'

/** Largest memory that is cleared and reused. To allocate a larger one costs less than to clear it. */
const reusableBytes = 4 * 1024 * 1024
/** Bytes of unused memories that start a garbage collection; a third of what the process may allocate in addition to memories. */
const maxGarbageBytes = 64 * 1024 * 1024
const maxMessageLength = 4_096

const modules = new Map<string, WebAssembly.Module>()
/** Bytes of unused memories. Until they are collected, they count against what the process may allocate. */
let garbageBytes = 0
let spare: { key: string; maximum: number; memory: WebAssembly.Memory } | undefined

send({ kind: 'ready', cpu: cpu() })
for (;;) {
  const frame = receive()
  if (frame === undefined) break
  const { head, bytes } = frame
  if (head.kind === 'evict') modules.delete(head.key)
  else if (head.kind === 'compile') compile(head.key, bytes)
  else if (head.kind === 'run') {
    run(head, bytes)
    collect()
  } else throw new Error('A response came without a call.')
}

function compile(key: string, bytes: Uint8Array): void {
  try {
    modules.set(key, new WebAssembly.Module(new Uint8Array(bytes)))
    send({ kind: 'compiled', cpu: cpu() })
  } catch (error) {
    send({ kind: 'rejected', message: messageOf(error), cpu: cpu() })
  }
}

function run(request: Request & { kind: 'run' }, stdin: Uint8Array): void {
  const module = modules.get(request.key)
  if (module === undefined) throw new Error('A run came before its module was compiled.')
  const memory = memoryFor(request)
  const none = new ArrayBuffer(0)
  const log = new RunLog(request.logLimit, (level, text) => send({ kind: 'log', level }, text))
  const wasi = new Wasi({
    memory: () => memory?.buffer ?? none,
    arguments: request.arguments,
    environment: request.environment,
    stdin,
    outputLimit: request.outputLimit,
    log: (text) => log.write('error', text),
  })
  const host = new HostFunctions({
    memory: () => memory?.buffer ?? none,
    environment: request.environment,
    log: (level, text) => log.write(level, text),
    leaveIfOver: () => wasi.leaveIfOver(),
    request(name, parts) {
      send({ kind: 'call', name, parts: parts.map(({ length }) => length) }, Buffer.concat(parts))
      const response = receive()
      // The runtime has ended.
      if (response === undefined) process.exit()
      if (response.head.kind !== 'response') throw new Error('The message after a call is not its response.')
      return { ok: response.head.ok, bytes: response.bytes }
    },
  })
  let trap: string | undefined
  try {
    const instance = new WebAssembly.Instance(module, {
      [wasiModule]: wasi.imports(),
      [hostModule]: { ...host.imports(), ...(memory === undefined ? {} : { [memoryImport.name]: memory }) },
    })
    ;(instance.exports['_start'] as () => void)()
  } catch (error) {
    trap = messageOf(error)
  }
  log.end()
  const outcome: Outcome = wasi.isFlooded
    ? { kind: 'flooded' }
    : wasi.exitCode !== undefined
      ? { kind: 'exited', code: wasi.exitCode }
      : trap !== undefined
        ? { kind: 'trapped', message: trap }
        : { kind: 'exited', code: 0 }
  const stdout = outcome.kind === 'exited' ? wasi.stdout : Buffer.alloc(0)
  send({ kind: 'ran', outcome, memoryPeak: memory?.buffer.byteLength ?? 0, logCut: log.cut, cpu: cpu() }, stdout)
  if (memory !== undefined) reuse(request, memory)
}

function memoryFor({ key, memory }: Request & { kind: 'run' }): WebAssembly.Memory | undefined {
  if (memory === undefined) return undefined
  const previous = spare
  spare = undefined
  if (previous?.key === key && previous.maximum === memory.maximum) return previous.memory
  garbageBytes += previous?.memory.buffer.byteLength ?? 0
  return new WebAssembly.Memory(memory)
}

/** Clears a memory for the next run. This happens after the outcome was sent, so that no caller waits for it. */
function reuse({ key, memory: wanted }: Request & { kind: 'run' }, memory: WebAssembly.Memory): void {
  const size = memory.buffer.byteLength
  if (wanted === undefined || size > reusableBytes || size !== wanted.initial * pageBytes) {
    garbageBytes += size
    return
  }
  new Uint8Array(memory.buffer).fill(0)
  spare = { key, maximum: wanted.maximum, memory }
}

/** Collects unused memories if there are many, because a collection takes longer than most runs. */
function collect(): void {
  if (garbageBytes <= maxGarbageBytes) return
  globalThis.gc?.()
  garbageBytes = 0
}

function cpu(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : 'The function threw an exception that is not an error.').slice(
    0,
    maxMessageLength,
  )
}

function receive() {
  const prefix = readExactly(prefixBytes)
  if (prefix === undefined) return undefined
  const payload = readExactly(prefix.readUInt32LE(0))
  return payload === undefined ? undefined : decodeFrame<Request>(prefix.readUInt32LE(4), payload)
}

/** Reads a number of bytes. @returns undefined if the runtime has ended */
function readExactly(length: number): Buffer | undefined {
  const buffer = Buffer.allocUnsafe(length)
  for (let at = 0; at < length;) {
    const count = readSync(0, buffer, at, length - at, null)
    if (count === 0) return undefined
    at += count
  }
  return buffer
}

function send(head: Reply, bytes?: Uint8Array): void {
  const frame = encodeFrame(head, bytes)
  for (let at = 0; at < frame.length;) at += writeSync(1, frame, at)
}
