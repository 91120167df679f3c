// Makes the frames that the server sends, in both versions of the protocol. Pure.
import { encodings, kinds, type SentBroadcast, type Version } from './frame.ts'

/** A frame that is ready to be sent, to any number of connections. */
export interface Frame {
  data: Buffer
  isBinary: boolean
}

/** A message of the server. */
export interface ServerMessage {
  joinRef?: string | null
  ref?: string | null
  topic: string
  event: string
  /** JSON. */
  payload: string
}

/** The maximum bytes of a text in the header of a binary frame. */
export const maxFieldBytes = 255

export function encode(version: Version, { joinRef = null, ref = null, topic, event, payload }: ServerMessage): Frame {
  const [join, reference, name, kind] = [joinRef, ref, topic, event].map((value) => JSON.stringify(value))
  const text =
    version === '2.0.0'
      ? `[${join},${reference},${name},${kind},${payload}]`
      : `{"join_ref":${join},"ref":${reference},"topic":${name},"event":${kind},"payload":${payload}}`
  return { data: Buffer.from(text), isBinary: false }
}

/** Encodes a broadcast. Undefined for bytes in version 1.0.0, which cannot represent them. */
export function encodeBroadcast(version: Version, topic: string, broadcast: SentBroadcast): Frame | undefined {
  const { event, content } = broadcast
  if (content.kind === 'json') {
    const meta = content.meta === undefined ? '' : `,"meta":${content.meta}`
    const payload = `{"type":"broadcast","event":${JSON.stringify(event)},"payload":${content.text}${meta}}`
    return encode(version, { topic, event: 'broadcast', payload })
  }
  if (version === '1.0.0') return undefined
  const [name, kind] = [Buffer.from(topic), Buffer.from(event)]
  const head = Buffer.from([kinds.userBroadcast, name.length, kind.length, 0, encodings.bytes])
  return { data: Buffer.concat([head, name, kind, content.bytes]), isBinary: true }
}

/** Makes each version's frame once, when the first connection needs it. */
export class FrameByVersion {
  readonly #make: (version: Version) => Frame | undefined
  readonly #made = new Map<Version, Frame | undefined>()

  constructor(make: (version: Version) => Frame | undefined) {
    this.#make = make
  }

  get(version: Version): Frame | undefined {
    if (!this.#made.has(version)) this.#made.set(version, this.#make(version))
    return this.#made.get(version)
  }
}
