// The executor's process: takes a module, runs it, says what came of it; one run at a time, a fresh instance for each.
// It reads and writes its pipes blocking, holds no secret but what a run is given, and is killed at the deadline.
import { readSync, writeSync } from 'node:fs'
import { hostModule, memoryImport, pageBytes, wasiModule } from '../module/abi.ts'
import { HostFunctions } from './host-functions.ts'
import { decodeFrame, encodeFrame, prefixBytes, type Outcome, type Reply, type Request } from './protocol.ts'
import { Wasi } from './wasi.ts'
import { RunLog } from './run-log.ts'

/** Memories up to this size are cleared and used again; larger ones cost less to be made anew. */
const reusableBytes = 4 * 1024 * 1024
/** A third of what an executor may allocate beside its memory. */
const maxGarbage = 64 * 1024 * 1024
const maxMessageLength = 4_096

const modules = new Map<string, WebAssembly.Module>()
/** Bytes of memories that were left behind: they count against what the process may allocate until they are collected. */
let garbage = 0
let spare: { key: string; maximum: number; memory: WebAssembly.Memory } | undefined

send({ kind: 'ready', cpu: cpu() })
for (;;) {
  const frame = receive()
  if (frame === undefined) break
  const { head, bytes } = frame
  if (head.kind === 'forget') modules.delete(head.key)
  else if (head.kind === 'compile') compile(head.key, bytes)
  else if (head.kind === 'run') {
    run(head, bytes)
    collect()
  } else throw new Error('an answer to nothing')
}

function compile(key: string, bytes: Uint8Array): void {
  try {
    modules.set(key, new WebAssembly.Module(new Uint8Array(bytes)))
    send({ kind: 'compiled', cpu: cpu() })
  } catch (error) {
    send({ kind: 'refused', message: messageOf(error), cpu: cpu() })
  }
}

function run(request: Request & { kind: 'run' }, stdin: Uint8Array): void {
  const module = modules.get(request.key)
  if (module === undefined) throw new Error('a run of a module that was not compiled')
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
      // The runtime is gone.
      if (response === undefined) process.exit()
      if (response.head.kind !== 'answer') throw new Error('a call was answered with something else')
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
  if (memory !== undefined) keep(request, memory)
}

function memoryFor({ key, memory }: Request & { kind: 'run' }): WebAssembly.Memory | undefined {
  if (memory === undefined) return undefined
  const stored = spare
  spare = undefined
  if (stored?.key === key && stored.maximum === memory.maximum) return stored.memory
  garbage += stored?.memory.buffer.byteLength ?? 0
  return new WebAssembly.Memory(memory)
}

/** After the answer: the next run finds the memory clean, and nobody waits for the cleaning. */
function keep({ key, memory: wanted }: Request & { kind: 'run' }, memory: WebAssembly.Memory): void {
  const size = memory.buffer.byteLength
  if (wanted === undefined || size > reusableBytes || size !== wanted.initial * pageBytes) {
    garbage += size
    return
  }
  new Uint8Array(memory.buffer).fill(0)
  spare = { key, maximum: wanted.maximum, memory }
}

/** Takes longer than most runs, so it is done seldom. */
function collect(): void {
  if (garbage <= maxGarbage) return
  globalThis.gc?.()
  garbage = 0
}

function cpu(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : 'an exception that is no error').slice(0, maxMessageLength)
}

function receive() {
  const prefix = readExactly(prefixBytes)
  if (prefix === undefined) return undefined
  const payload = readExactly(prefix.readUInt32LE(0))
  return payload === undefined ? undefined : decodeFrame<Request>(prefix.readUInt32LE(4), payload)
}

/** Undefined when the runtime is gone. */
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
