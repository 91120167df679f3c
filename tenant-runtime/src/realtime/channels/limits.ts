// The limits of channels: those of the tenant's plan, and those that hold for all tenants.
import type { Limits } from '@tenantry/contract'

/** The number of channels of a connection. */
export const maxChannels = 100
/** The bytes that wait for a slow reader, after which its connection is closed. */
export const maxBufferedBytes = 4 * 1024 * 1024
/** The milliseconds without a message after which a connection is closed. Clients send a heartbeat every 25 s. */
export const maxSilence = 60_000
/** The part of the plan's messages that one connection may send. */
const connectionPart = 1 / 2
/** The part of the plan's messages that may be messages of presence. */
const presencePart = 1 / 5

/** The number of frames of any kind for each message that the plan allows: joins, heartbeats, and messages that are rejected. */
const framesPerMessage = 4
/** The minimum of frames that one connection may send per second. */
const minFrames = 50

/** Limits for a tenant whose plan sets none. */
const unlimited = { messages: 10_000, payloadBytes: 3_000_000 }

export interface ChannelLimits {
  /** Messages that clients of the tenant may send per second, of one connection, and of presence. */
  messages: number
  messagesOfConnection: number
  presences: number
  joins: number
  /** Frames of any kind per second, of the tenant and of one connection. More end the connection. */
  frames: number
  framesOfConnection: number
  /** The maximum bytes of a message. */
  payloadBytes: number
}

/** Returns the limits of the tenant's plan. */
export function limitsOf({ realtime_messages: perSecond, realtime_payload_bytes: bytes }: Limits): ChannelLimits {
  const messages = perSecond ?? unlimited.messages
  return {
    messages,
    messagesOfConnection: Math.max(1, messages * connectionPart),
    presences: Math.max(1, messages * presencePart),
    joins: messages,
    frames: Math.max(2 * minFrames, messages * framesPerMessage),
    framesOfConnection: Math.max(minFrames, messages * connectionPart * framesPerMessage),
    payloadBytes: bytes ?? unlimited.payloadBytes,
  }
}
