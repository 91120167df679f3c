// The bytes of a journal segment: self-contained frames of records, each of which has a counter's whole value. Repeated or
// missing parts do no harm to the rest. Pure.
import { Counter, CounterKey } from '@tenantry/contract'
import { Value } from 'typebox/value'
import { crc32 } from 'node:zlib'

/** The first bytes of a frame. The records' length and CRC-32 (32 bits each, little-endian) and the records follow. */
const magic = Buffer.from([0xab, 0x54, 0x4a, 0x31])
const frameHead = 12

/** A record of the segment's writer: length (16 bits), JSON. */
const originRecord = 1
/** A record that assigns a number to a key in this segment: number (32 bits), length (16 bits), JSON of the key. */
const keyRecord = 2
/** A record of a counter's value: number (32 bits), value (float, 64 bits). */
const valueRecord = 3

export interface Origin {
  /** The stable name of the gateway, as in UsagePush. */
  source: string
  boot: string
}

/** Writes one frame at a time into a reused buffer. */
export class FrameWriter {
  #buffer = Buffer.allocUnsafe(64 * 1024)
  #at = frameHead

  begin(): void {
    this.#at = frameHead
  }

  origin(origin: Origin): void {
    this.#text(originRecord, undefined, JSON.stringify({ source: origin.source, boot: origin.boot }))
  }

  key(number: number, key: CounterKey): void {
    this.#text(keyRecord, number, JSON.stringify(key))
  }

  value(number: number, value: number): void {
    this.#room(13)
    this.#buffer[this.#at] = valueRecord
    this.#buffer.writeUInt32LE(number, this.#at + 1)
    this.#buffer.writeDoubleLE(value, this.#at + 5)
    this.#at += 13
  }

  /**
   * Ends the frame.
   * @returns the whole frame, valid until the next one begins
   */
  end(): Buffer {
    const frame = this.#buffer.subarray(0, this.#at)
    magic.copy(frame)
    frame.writeUInt32LE(this.#at - frameHead, 4)
    frame.writeUInt32LE(crc32(frame.subarray(frameHead)), 8)
    return frame
  }

  #text(record: number, number: number | undefined, text: string): void {
    const length = Buffer.byteLength(text)
    this.#room(length + 7)
    this.#buffer[this.#at++] = record
    if (number !== undefined) this.#at = this.#buffer.writeUInt32LE(number, this.#at)
    this.#at = this.#buffer.writeUInt16LE(length, this.#at)
    this.#at += this.#buffer.write(text, this.#at)
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#at + bytes))
    this.#buffer.copy(larger, 0, 0, this.#at)
    this.#buffer = larger
  }
}

interface SegmentContent {
  /** Undefined when the segment has no valid frame with it. */
  origin: Origin | undefined
  /** The last value of each counter. */
  counters: Counter[]
  /** The number of bytes after the last whole frame, from an incomplete write. */
  torn: number
  /** The number of invalid bytes that have whole frames after them. */
  damaged: number
}

export function readSegment(bytes: Buffer): SegmentContent {
  const reader = new RecordReader()
  let [at, damaged, unreadable] = [0, 0, 0]
  while (at < bytes.length) {
    const records = frameAt(bytes, at)
    if (records === undefined) {
      const next = bytes.indexOf(magic, at + 1)
      unreadable += (next === -1 ? bytes.length : next) - at
      at = next === -1 ? bytes.length : next
      continue
    }
    damaged += unreadable + reader.read(records)
    unreadable = 0
    at += frameHead + records.length
  }
  return { origin: reader.origin, counters: reader.counters, torn: unreadable, damaged }
}

/**
 * Reads the frame at a position.
 * @returns its records; undefined when no whole frame begins there
 */
function frameAt(bytes: Buffer, at: number): Buffer | undefined {
  if (at + frameHead > bytes.length || bytes.compare(magic, 0, magic.length, at, at + magic.length) !== 0)
    return undefined
  const end = at + frameHead + bytes.readUInt32LE(at + 4)
  if (end > bytes.length) return undefined
  const records = bytes.subarray(at + frameHead, end)
  return crc32(records) === bytes.readUInt32LE(at + 8) ? records : undefined
}

class RecordReader {
  origin: Origin | undefined
  readonly #counters = new Map<number, Counter>()

  get counters(): Counter[] {
    return [...this.#counters.values()].filter(({ value }) => value > 0)
  }

  /**
   * Reads records.
   * @returns the number of bytes at the end that are not valid records
   */
  read(records: Buffer): number {
    let at = 0
    while (at < records.length) {
      const next = this.#record(records, at)
      if (next === undefined) break
      at = next
    }
    return records.length - at
  }

  /**
   * Reads the record at a position.
   * @returns the position of the next one; undefined when the record is invalid
   */
  #record(records: Buffer, at: number): number | undefined {
    switch (records[at]) {
      case originRecord: {
        const text = textAt(records, at + 1)
        const origin = text === undefined ? undefined : parseJson(text.json)
        if (!isOrigin(origin)) return undefined
        this.origin = origin
        return text?.end
      }
      case keyRecord: {
        const text = textAt(records, at + 5)
        const key = text === undefined ? undefined : parseJson(text.json)
        if (!Value.Check(CounterKey, key)) return undefined
        this.#counters.set(records.readUInt32LE(at + 1), { ...key, value: 0 })
        return text?.end
      }
      case valueRecord: {
        if (at + 13 > records.length) return undefined
        const value = records.readDoubleLE(at + 5)
        if (!Number.isSafeInteger(value) || value < 0) return undefined
        // The frame with the counter's key may be lost.
        const counter = this.#counters.get(records.readUInt32LE(at + 1))
        if (counter !== undefined) counter.value = Math.max(counter.value, value)
        return at + 13
      }
      default:
        return undefined
    }
  }
}

function textAt(records: Buffer, at: number): { json: string; end: number } | undefined {
  if (at + 2 > records.length) return undefined
  const end = at + 2 + records.readUInt16LE(at)
  return end > records.length ? undefined : { json: records.toString('utf8', at + 2, end), end }
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

function isOrigin(value: unknown): value is Origin {
  return (
    typeof value === 'object' &&
    value !== null &&
    'source' in value &&
    typeof value.source === 'string' &&
    'boot' in value &&
    typeof value.boot === 'string'
  )
}
