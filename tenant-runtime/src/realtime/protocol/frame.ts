// Reads the frames of clients in both versions of the protocol: JSON texts, and binary frames of version 2.0.0. Pure.
import { parseJson } from '../../http/parse-json.ts'

/** The versions of the protocol: `1.0.0` sends objects, `2.0.0` arrays and binary frames. */
export const versions = ['1.0.0', '2.0.0'] as const
export type Version = (typeof versions)[number]

/** The message of a broadcast: JSON on one line, or bytes of any other kind. */
/** `meta` is JSON about a stored message. */
export type BroadcastContent = { kind: 'json'; text: string; meta?: string } | { kind: 'bytes'; bytes: Buffer }

/** A broadcast as a client sends it. */
export interface SentBroadcast {
  event: string
  content: BroadcastContent
  /** The length of the message in bytes. */
  length: number
  /** The seconds for which the message is stored; undefined for one that is not. */
  storedFor?: number | undefined
  /** The ID of a message that was stored before. */
  storedId?: bigint
}

/** Makes a broadcast of a value that JSON can represent; of an empty object for null and undefined. */
export function jsonBroadcast(event: string, payload: unknown): SentBroadcast {
  const text = JSON.stringify(payload ?? {})
  return { event, content: { kind: 'json', text }, length: Buffer.byteLength(text) }
}

/** Returns the broadcast of a text frame; undefined for a payload that is none. */
export function broadcastOf(payload: unknown): SentBroadcast | undefined {
  if (!isObject(payload) || typeof payload['event'] !== 'string') return undefined
  return jsonBroadcast(payload['event'], payload['payload'])
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** One message of a client. */
export interface ClientFrame {
  /** The reference of the join whose channel the message is for; null outside of a channel. */
  joinRef: string | null
  /** The reference for the reply; null when the client expects none. */
  ref: string | null
  topic: string
  event: string
  payload: unknown
  /** The broadcast of a binary frame, whose payload is undefined. */
  broadcast?: SentBroadcast
}

/** A frame that cannot be read. `closeCode` is the status with which the connection is closed (RFC 6455, section 7.4). */
export class FrameError extends Error {
  readonly closeCode: 1003 | 1007

  constructor(closeCode: 1003 | 1007, message: string) {
    super(message)
    this.closeCode = closeCode
  }
}

/** The kinds of binary frames. */
export const kinds = { push: 0, userBroadcastPush: 3, userBroadcast: 4 } as const
/** The encodings of a broadcast's message in a binary frame. */
export const encodings = { bytes: 0, json: 1 } as const

/**
 * Reads a frame.
 * @throws FrameError
 */
export function readFrame(version: Version, data: Buffer, isBinary: boolean): ClientFrame {
  if (!isBinary) return readText(version, data)
  if (version === '1.0.0') throw new FrameError(1003, 'Version 1.0.0 of the protocol has no binary frames.')
  return readBinary(data)
}

function readText(version: Version, data: Buffer): ClientFrame {
  let value: unknown
  try {
    value = parseJson(data.toString('utf8'))
  } catch (cause) {
    throw new FrameError(1007, `The frame is not JSON: ${reasonOf(cause)}`)
  }
  const members = version === '1.0.0' ? membersOfObject(value) : membersOfArray(value)
  const [joinRef, ref, topic, event, payload] = members
  if (typeof topic !== 'string' || typeof event !== 'string')
    throw new FrameError(1007, 'The topic and the event of a frame must be strings.')
  return { joinRef: refOf(joinRef), ref: refOf(ref), topic, event, payload }
}

function membersOfArray(value: unknown): unknown[] {
  if (!Array.isArray(value) || value.length !== 5)
    throw new FrameError(1007, 'A frame must be an array of five members: join_ref, ref, topic, event, payload.')
  return value
}

function membersOfObject(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new FrameError(1007, 'A frame must be an object with topic, event, payload and ref.')
  const { join_ref: joinRef, ref, topic, event, payload } = value as Record<string, unknown>
  return [joinRef, ref, topic, event, payload]
}

/** The maximum length of a reference, as in binary frames. */
const maxRefLength = 255

function refOf(value: unknown): string | null {
  if (value === null || value === undefined) return null
  if (typeof value === 'string') {
    if (value.length > maxRefLength)
      throw new FrameError(1007, `A reference of a frame has at most ${maxRefLength} characters.`)
    return value
  }
  if (typeof value === 'number') return String(value)
  throw new FrameError(1007, 'The references of a frame must be strings or null.')
}

function readBinary(data: Buffer): ClientFrame {
  const kind = data[0]
  if (kind === kinds.userBroadcastPush) {
    const [joinRef, ref, topic, event, meta, rest, encoding] = readFields(data, 5, true)
    const broadcast = { event, content: contentOf(rest, encoding), length: rest.length, storedFor: storedFor(meta) }
    return { joinRef: joinRef || null, ref: ref || null, topic, event: 'broadcast', payload: undefined, broadcast }
  }
  if (kind === kinds.push) {
    const [joinRef, ref, topic, event] = readFields(data, 4, false)
    return { joinRef: joinRef || null, ref: ref || null, topic, event, payload: undefined }
  }
  throw new FrameError(1003, `Unknown kind ${kind ?? 'of an empty frame'}. Clients send binary frames of kind 0 or 3.`)
}

/** The seconds for which a stored message is kept, unless its sender sets a shorter time. */
export const defaultTtl = 72 * 3_600

/** Reads from a frame's JSON for how long the message is stored. */
function storedFor(meta: string): number | undefined {
  if (meta === '') return undefined
  let persist: unknown
  try {
    persist = (parseJson(meta) as { persist?: unknown } | null)?.persist
  } catch {
    throw new FrameError(1007, 'The metadata of the broadcast are not JSON.')
  }
  if (persist === true) return defaultTtl
  const { ttl } = typeof persist === 'object' && persist !== null ? (persist as { ttl?: unknown }) : {}
  return typeof ttl === 'number' && ttl > 0 ? ttl : undefined
}

type Fields = [joinRef: string, ref: string, topic: string, event: string, meta: string, rest: Buffer, encoding: number]

/** Reads texts whose lengths precede them, each in one byte, and after these the encoding if there is one. */
function readFields(data: Buffer, count: 4 | 5, hasEncoding: boolean): Fields {
  const begin = 1 + count + (hasEncoding ? 1 : 0)
  if (data.length < begin) throw new FrameError(1007, 'The binary frame ends in its header.')
  const texts: string[] = []
  let at = begin
  for (const length of data.subarray(1, 1 + count)) {
    if (at + length > data.length) throw new FrameError(1007, 'The binary frame ends in its header.')
    texts.push(utf8(data.subarray(at, at + length)))
    at += length
  }
  const [joinRef = '', ref = '', topic = '', event = '', meta = ''] = texts
  return [joinRef, ref, topic, event, meta, data.subarray(at), hasEncoding ? (data[1 + count] ?? 0) : encodings.bytes]
}

function contentOf(bytes: Buffer, encoding: number): BroadcastContent {
  if (encoding === encodings.bytes) return { kind: 'bytes', bytes }
  if (encoding !== encodings.json)
    throw new FrameError(1007, `Unknown encoding ${encoding} of a broadcast. Allowed: 0 for bytes, 1 for JSON.`)
  return { kind: 'json', text: jsonText(bytes) }
}

/** Returns JSON on one line, as clients and server-side readers need it. */
function jsonText(bytes: Buffer): string {
  const text = utf8(bytes)
  try {
    parseJson(text)
  } catch (cause) {
    throw new FrameError(1007, `The message of the broadcast is not JSON: ${reasonOf(cause)}`)
  }
  return text
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : 'unknown'
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function utf8(bytes: Buffer): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw new FrameError(1007, 'The binary frame has a text that is not UTF-8.')
  }
}
