// The log of one program: its last lines in two files of limited size, and its new ones for readers that follow.
import { appendFile, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { isMissingFile, LineSplitter } from '@tenantry/contract'
import type { LogLine, LogOptions } from '../../../control-plane/src/engines/index.ts'
import { BoundedQueue } from './bounded-queue.ts'

const maxLineBytes = 16 * 1024
const maxFileBytes = 4 * 1024 * 1024
/** Maximum characters that wait for the disk. A program that writes faster loses lines. */
const maxPendingCharacters = 1024 * 1024
const maxFollowedLines = 10_000
/** Highest number that the last six digits of a time hold. */
const maxLinesPerMillisecond = 999_999

export class ContainerLog {
  readonly #file: string
  readonly #followers = new Set<BoundedQueue<LogLine>>()
  #pending = ''
  #dropped = 0
  #last = { milliseconds: 0, lines: 0 }
  #writing: Promise<void> | undefined

  constructor(directory: string) {
    this.#file = join(directory, 'log')
  }

  /** Reads a program's output until its end. */
  async read(stream: LogLine['stream'], source: Readable): Promise<void> {
    const splitter = new LineSplitter(maxLineBytes)
    source.on('data', (chunk: Buffer) => {
      for (const { bytes } of splitter.push(chunk)) this.#add(stream, bytes.toString())
    })
    source.on('error', () => undefined)
    await new Promise<void>((resolve) => source.once('close', () => resolve()))
    const last = splitter.end()
    if (last !== undefined) this.#add(stream, last.bytes.toString())
    await this.#writing
  }

  /** Adds a line of the host's own. */
  note(text: string): void {
    this.#add('stderr', text)
  }

  /** Yields stored lines, and with `follow` the later ones. */
  async *lines({ follow, tail, since }: LogOptions, signal: AbortSignal): AsyncGenerator<LogLine, undefined> {
    const queue = new BoundedQueue<LogLine>(maxFollowedLines, signal)
    if (follow) this.#followers.add(queue)
    try {
      await this.#writing
      const stored = (await Promise.all([`${this.#file}.1`, this.#file].map(readLines))).flat()
      const from = since === undefined ? 0 : Date.parse(since)
      const chosen = stored.filter(({ at }) => Date.parse(at) >= from)
      if (tail > 0) yield* chosen.slice(-tail)
      if (follow) yield* queue.values()
    } finally {
      this.#followers.delete(queue)
    }
  }

  #add(stream: LogLine['stream'], text: string): void {
    const line = { at: this.#stamp(), stream, text: text.replace(/\r$/, '') }
    for (const follower of this.#followers) follower.push(line)
    if (this.#pending.length > maxPendingCharacters) {
      this.#dropped++
      return
    }
    this.#pending += formatted(line)
    this.#writing ??= this.#write()
  }

  /** Returns a later time than that of each line before, because a reader that continues skips lines up to its last time. */
  #stamp(): string {
    const now = Date.now()
    let { milliseconds, lines } = this.#last
    if (now > milliseconds) [milliseconds, lines] = [now, 0]
    else if (++lines > maxLinesPerMillisecond) [milliseconds, lines] = [milliseconds + 1, 0]
    this.#last = { milliseconds, lines }
    return new Date(milliseconds).toISOString().replace('Z', `${String(lines).padStart(6, '0')}Z`)
  }

  async #write(): Promise<void> {
    // A full disk loses lines, and nothing else.
    while (this.#pending !== '') {
      const text = this.#pending
      this.#pending = ''
      await this.#append(text).catch(() => undefined)
      if (this.#dropped > 0) {
        const dropped = `${this.#dropped} lines were dropped, because the program writes too many.`
        this.#dropped = 0
        this.#pending += formatted({ at: this.#stamp(), stream: 'stderr', text: dropped })
      }
    }
    this.#writing = undefined
  }

  async #append(text: string): Promise<void> {
    const bytes = await stat(this.#file).then(
      ({ size }) => size,
      () => 0,
    )
    if (bytes > maxFileBytes) {
      await rm(`${this.#file}.1`, { force: true })
      await rename(this.#file, `${this.#file}.1`)
    }
    await appendFile(this.#file, text, { mode: 0o600 })
  }
}

function formatted({ at, stream, text }: LogLine): string {
  return `${at} ${stream} ${text}\n`
}

async function readLines(file: string): Promise<LogLine[]> {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    if (isMissingFile(cause)) return ''
    throw cause
  })
  return text.split('\n').flatMap((line) => {
    const [, at, stream, rest] = /^(\S+) (stdout|stderr) (.*)$/.exec(line) ?? []
    if (at === undefined || rest === undefined || (stream !== 'stdout' && stream !== 'stderr')) return []
    return [{ at, stream, text: rest }]
  })
}
